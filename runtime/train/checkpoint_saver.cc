#include "runtime/train/checkpoint_saver.h"

#include <utility>

#include "runtime/base/thread_pool.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/log.h"

namespace tfjob::train {
namespace {

constexpr Duration kPollInterval = 100ms;

}  // namespace

CheckpointSaver::CheckpointSaver(std::string folder, state::TrainingState training,
                                 CheckpointPolicy policy, Clock& clock)
    : folder_(std::move(folder)),
      training_(std::move(training)),
      policy_(policy),
      clock_(clock),
      last_time_(clock.Monotonic()) {
  if (!enabled()) return;
  thread_ = std::thread([this] {
    SetThreadName("checkpoint");
    Write();
  });
}

CheckpointSaver::~CheckpointSaver() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    AwaitWritten();
  }
  thread_.join();
}

bool CheckpointSaver::Due(int64_t step) const {
  if (!enabled() || step == last_step_) return false;
  if (policy_.every_steps > 0) return step - last_step_.value_or(0) >= policy_.every_steps;
  const Duration interval(static_cast<int64_t>(policy_.every_secs * 1e6));
  return policy_.every_secs > 0 && clock_.Monotonic() - last_time_ >= interval;
}

void CheckpointSaver::Skip(int64_t step) {
  last_step_ = step;
  last_time_ = clock_.Monotonic();
}

Status CheckpointSaver::Save(state::Snapshot snapshot) {
  if (!enabled()) return OkStatus();
  RETURN_IF_ERROR(Flush());
  Skip(snapshot.global_step);
  {
    MutexLock lock(mutex_);
    pending_ = std::move(snapshot);
  }
  changed_.NotifyAll();
  return OkStatus();
}

Status CheckpointSaver::Flush() {
  MutexLock lock(mutex_);
  AwaitWritten();
  return std::exchange(result_, OkStatus());
}

void CheckpointSaver::AwaitWritten() {
  Duration reported = clock_.Monotonic();
  while (pending_) {
    changed_.WaitFor(mutex_, kPollInterval);
    const Duration now = clock_.Monotonic();
    if (!pending_ || now - reported < kReportInterval) continue;
    reported = now;
    kCheckpointLog.Warning("waiting for the disk: a checkpoint is still being written",
                           {{"checkpoint", io::CheckpointPrefix(folder_, pending_->global_step)}});
  }
}

void CheckpointSaver::Write() {
  MutexLock lock(mutex_);
  while (true) {
    while (!pending_ && !stopping_) changed_.Wait(mutex_);
    if (!pending_) return;
    // Only this thread resets pending_, so it stays in place while the lock is released.
    const state::Snapshot& snapshot = *pending_;
    mutex_.Unlock();
    Status result = SaveCheckpoint(folder_, training_, snapshot, policy_.keep, clock_.Now());
    mutex_.Lock();
    if (result_.ok()) result_ = std::move(result);
    pending_.reset();
    changed_.NotifyAll();
  }
}

}  // namespace tfjob::train
