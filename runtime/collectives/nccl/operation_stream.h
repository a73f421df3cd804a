// Runs a communicator's operations on a stream of its own, and tells how far the GPU has got with
// them. Private to this package. Used by one thread at a time.
#pragma once

#include <functional>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/nccl/nccl_api.h"
#include "runtime/collectives/plan/plan.h"
#include "runtime/device/cuda/cuda_runtime.h"

namespace tfjob::collectives::nccl {

class OperationStream {
 public:
  // The GPU may take `patience` for the operations in progress.
  OperationStream(std::shared_ptr<device::cuda::CudaRuntime> device, Duration patience)
      : device_(std::move(device)), patience_(patience) {}

  // Creates the stream. Call Open before the other functions, except Drain.
  Status Open();
  device::Stream& stream() { return *stream_; }
  NcclStream handle() { return device::cuda::HandleOf(*stream_); }

  // Call before an operation is submitted. `first` means that no operation is in progress.
  void Begin(bool first);
  // Call after an operation, or the copy of its result, has been submitted.
  void End() { device_->Record(*done_, *stream_); }
  // Returns whether the GPU has completed all operations.
  StatusOr<bool> HasRun() { return device_->HasRun(*done_); }
  Status Synchronize() { return device_->Synchronize(*done_); }
  // Returns DeadlineExceeded if the GPU has taken too long for `call`, the latest operation. A rank
  // whose own GPU has not started returns this first; the others wait longer, so that the error
  // names the rank that holds them up.
  Status CheckTime(int rank, const Call& call);
  // Waits, for a few seconds at most, until the GPU has completed everything that was submitted.
  // Calls `pause` between two polls.
  void Drain(const std::function<void()>& pause);

 private:
  const std::shared_ptr<device::cuda::CudaRuntime> device_;
  const Duration patience_;
  std::unique_ptr<device::Stream> stream_;
  // Recorded before the first operation in progress, and after the last one.
  std::unique_ptr<device::Event> begun_, done_;
  Duration met_{0};  // when all ranks had called the latest operation
};

}  // namespace tfjob::collectives::nccl
