#include "runtime/collectives/nccl/operation_stream.h"

#include <chrono>

namespace tfjob::collectives::nccl {
namespace {

// How long an operation that failed waits for the GPU to stop using the caller's memory.
constexpr Duration kDrainPatience{5s};

}  // namespace

Status OperationStream::Open() {
  ASSIGN_OR_RETURN(stream_, device_->NewStream());
  ASSIGN_OR_RETURN(begun_, device_->NewEvent());
  ASSIGN_OR_RETURN(done_, device_->NewEvent());
  return OkStatus();
}

void OperationStream::Begin(bool first) {
  met_ = RealClock().Monotonic();
  if (first) device_->Record(*begun_, *stream_);
}

Status OperationStream::CheckTime(int rank, const Call& call) {
  const Duration taken = RealClock().Monotonic() - met_;
  if (taken < patience_) return OkStatus();
  const std::string late =
      StrCat(ToString(call), " within ", std::chrono::duration<double>(patience_).count(),
             " s after all ranks had called it");
  ASSIGN_OR_RETURN(const bool begun, device_->HasRun(*begun_));
  if (!begun) {
    return DeadlineExceeded("rank ", rank, ": its GPU has not started ", late,
                            "; earlier operations block the GPU");
  }
  if (taken < patience_ + patience_ / 4) return OkStatus();
  return DeadlineExceeded("rank ", rank, ": NCCL has not completed ", late,
                          "; the GPU of this rank has started it");
}

void OperationStream::Drain(const std::function<void()>& pause) {
  if (done_ == nullptr) return;
  End();
  const Duration deadline = RealClock().Monotonic() + kDrainPatience;
  while (RealClock().Monotonic() < deadline) {
    const StatusOr<bool> done = HasRun();
    if (!done.ok() || *done) return;
    pause();
  }
}

}  // namespace tfjob::collectives::nccl
