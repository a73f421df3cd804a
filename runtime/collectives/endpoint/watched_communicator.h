// Wraps the communicator of a generation. The group therefore learns of failed operations, and can
// abort the communicator although the strategy owns it. Private to this package.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/collectives/communicator.h"

namespace tfjob::collectives {

class WatchedCommunicator : public Communicator {
 public:
  // Called with the error from a failed operation, on that operation's thread. The operation then
  // returns this function's result instead.
  using OnFailure = std::function<Status(const Status&)>;

  // `on_drop` is called in the destructor, and must release all other references to `inner`.
  // `inner` is then destroyed rather than aborted, so only operations of ranks that still need this
  // rank fail.
  WatchedCommunicator(std::shared_ptr<Communicator> inner, OnFailure on_failure,
                      std::function<void()> on_drop)
      : inner_(std::move(inner)),
        on_failure_(std::move(on_failure)),
        on_drop_(std::move(on_drop)) {}
  ~WatchedCommunicator() override { on_drop_(); }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string_view transport() const override { return inner_->transport(); }

  StatusOr<std::unique_ptr<Memory>> Allocate(size_t bytes) override {
    StatusOr<std::unique_ptr<Memory>> memory = inner_->Allocate(bytes);
    if (!memory.ok()) return on_failure_(memory.status());
    return memory;
  }
  Status AllReduce(std::span<std::byte> values, DType dtype, Reduction reduction) override {
    return Check(inner_->AllReduce(values, dtype, reduction));
  }
  device::DeviceRuntime* device() const override { return inner_->device(); }
  Status AllReduceOnDevice(const DeviceSum& sum) override {
    return Check(inner_->AllReduceOnDevice(sum));
  }
  Status AwaitDevice() override { return Check(inner_->AwaitDevice()); }
  Status ReduceScatter(std::span<std::byte> values, DType dtype, Reduction reduction) override {
    return Check(inner_->ReduceScatter(values, dtype, reduction));
  }
  Status AllGather(std::span<std::byte> values, size_t element_bytes) override {
    return Check(inner_->AllGather(values, element_bytes));
  }
  Status AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                           std::vector<std::byte>& all, std::vector<size_t>& sizes) override {
    return Check(inner_->AllGatherVariable(own, most_bytes, all, sizes));
  }
  Status Broadcast(std::span<std::byte> values, int root) override {
    return Check(inner_->Broadcast(values, root));
  }
  Status Reduce(std::span<std::byte> values, DType dtype, Reduction reduction, int root) override {
    return Check(inner_->Reduce(values, dtype, reduction, root));
  }
  Status AllToAll(std::span<std::byte> values, size_t element_bytes) override {
    return Check(inner_->AllToAll(values, element_bytes));
  }
  Status Barrier() override { return Check(inner_->Barrier()); }

  void Abort(const Status& why) override { inner_->Abort(why); }
  Waiting CurrentWait() const override { return inner_->CurrentWait(); }

 private:
  Status Check(const Status& status) { return status.ok() ? status : on_failure_(status); }

  const std::shared_ptr<Communicator> inner_;
  const OnFailure on_failure_;
  const std::function<void()> on_drop_;
};

}  // namespace tfjob::collectives
