// Owns a communicator of NCCL that does not block, and waits for it by polling. Private to this
// package. Used by one thread at a time, on which the GPU's context must be current.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/nccl/nccl_api.h"

namespace tfjob::collectives::nccl {

class NcclGroup {
 public:
  // Pauses between two polls. Returns an error if the wait must end.
  using Pause = std::function<Status()>;

  explicit NcclGroup(const NcclApi& nccl) : nccl_(nccl) {}
  // Aborts the communicator, unless Leave or Abort was called.
  ~NcclGroup() { Abort(); }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Connects to the other ranks. All ranks must call Connect, with the same id.
  Status Connect(const NcclUniqueId& id, int rank, int ranks, const Pause& pause);
  NcclHandle handle() const { return handle_; }

  // Waits until the call that returned `result` has finished. `call` is the name of its function.
  Status Finish(NcclResult result, std::string_view call, const Pause& pause);
  // Returns the error that has occurred in NCCL since the last call, if any.
  Status Check(std::string_view call);

  // Submit groups of operations on bytes to the stream, and return NCCL's result. Gather broadcasts
  // bytes [begins[r], begins[r + 1]) from every rank r. Swap sends slice r of `from` to every rank
  // r, and receives slice r of `to` from it.
  NcclResult Gather(std::byte* values, std::span<const size_t> begins, NcclStream stream);
  NcclResult Swap(std::byte* from, std::byte* to, size_t slice, int ranks, NcclStream stream);

  // Ends the operations on the GPU, without waiting for other ranks. Every later call of Check
  // returns Cancelled.
  void Abort();
  // Ends the communicator after its last operation. Aborts it if `pause` returns an error before
  // NCCL has finished.
  void Leave(const Pause& pause);

 private:
  template <typename Calls>
  NcclResult Grouped(const Calls& calls);

  const NcclApi& nccl_;
  NcclHandle handle_ = nullptr;
};

}  // namespace tfjob::collectives::nccl
