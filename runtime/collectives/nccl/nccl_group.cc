#include "runtime/collectives/nccl/nccl_group.h"

#include <utility>

namespace tfjob::collectives::nccl {

Status NcclGroup::Connect(const NcclUniqueId& id, int rank, int ranks, const Pause& pause) {
  NcclConfig config;
  const NcclResult result = nccl_.CommInitRankConfig(&handle_, ranks, id, rank, &config);
  return Finish(result, "ncclCommInitRankConfig", pause);
}

Status NcclGroup::Finish(NcclResult result, std::string_view call, const Pause& pause) {
  while (result == kNcclInProgress) {
    RETURN_IF_ERROR(pause());
    const NcclResult asked = nccl_.CommGetAsyncError(handle_, &result);
    if (asked != kNcclSuccess) return ToStatus(nccl_, asked, "ncclCommGetAsyncError");
  }
  return ToStatus(nccl_, result, call);
}

Status NcclGroup::Check(std::string_view call) {
  if (handle_ == nullptr) return Cancelled(call, ": the communicator has been aborted");
  NcclResult result = kNcclSuccess;
  const NcclResult asked = nccl_.CommGetAsyncError(handle_, &result);
  if (asked != kNcclSuccess) return ToStatus(nccl_, asked, "ncclCommGetAsyncError");
  return result == kNcclInProgress ? OkStatus() : ToStatus(nccl_, result, call);
}

// Returns the first error of the calls or, if there is none, the result of the group.
template <typename Calls>
NcclResult NcclGroup::Grouped(const Calls& calls) {
  NcclResult first = nccl_.GroupStart();
  if (first != kNcclSuccess) return first;
  calls([&](NcclResult result) {
    if (first == kNcclSuccess && result != kNcclInProgress) first = result;
  });
  const NcclResult ended = nccl_.GroupEnd();
  return first == kNcclSuccess ? ended : first;
}

NcclResult NcclGroup::Gather(std::byte* values, std::span<const size_t> begins, NcclStream stream) {
  return Grouped([&](const auto& keep) {
    for (size_t root = 0; root + 1 < begins.size(); ++root) {
      std::byte* const part = values + begins[root];
      const size_t bytes = begins[root + 1] - begins[root];
      if (bytes == 0) continue;
      keep(nccl_.Broadcast(part, part, bytes, kNcclUint8, static_cast<int>(root), handle_, stream));
    }
  });
}

NcclResult NcclGroup::Swap(std::byte* from, std::byte* to, size_t slice, int ranks,
                           NcclStream stream) {
  return Grouped([&](const auto& keep) {
    for (int rank = 0; rank < ranks; ++rank) {
      const size_t begin = static_cast<size_t>(rank) * slice;
      keep(nccl_.Send(from + begin, slice, kNcclUint8, rank, handle_, stream));
      keep(nccl_.Receive(to + begin, slice, kNcclUint8, rank, handle_, stream));
    }
  });
}

void NcclGroup::Abort() {
  // The result is ignored: the communicator cannot be used afterwards in any case.
  if (handle_ != nullptr) (void)nccl_.CommAbort(std::exchange(handle_, nullptr));
}

void NcclGroup::Leave(const Pause& pause) {
  if (handle_ == nullptr) return;
  const Status finished = Finish(nccl_.CommFinalize(handle_), "ncclCommFinalize", pause);
  if (!finished.ok()) return Abort();
  (void)nccl_.CommDestroy(std::exchange(handle_, nullptr));
}

}  // namespace tfjob::collectives::nccl
