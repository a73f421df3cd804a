#include "runtime/train/model_dir/checkpoint_saver.h"

#include <algorithm>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/base/thread_pool.h"
#include "runtime/trace/trace.h"
#include "runtime/train/model_dir/log.h"

namespace tfjob::train {
namespace {

constexpr Duration kLeavePatience = 60s;
// The interval at which a wait checks whether another task has taken over.
constexpr Duration kAskEvery = 500ms;

}  // namespace

struct CheckpointSaver::Pending {
  state::SnapshotCopy snapshot;
  int64_t term = 0;
};

struct CheckpointSaver::Shared {
  Shared(SaverOptions given, Clock& its_clock)
      : options(std::move(given)),
        clock(&its_clock),
        schedule(options.policy, its_clock.Monotonic()) {}

  void Log(const SaveActions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (!actions.warning.empty()) kCheckpointLog.Warning(actions.warning);
    if (!actions.note.empty()) kCheckpointLog.Info(actions.note);
    if (options.show && shown != schedule.problem()) options.show(shown = schedule.problem());
  }
  void Begin(Pending pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    kCheckpointLog.Info("saving a checkpoint", {{"step", pending.snapshot.global_step()}});
    schedule.OnBegin(pending.snapshot.global_step(), clock->Monotonic());
    Hand(std::move(pending), false);
  }
  // Starts the write that the actions request, if any. The returned actions contain the result or
  // the time of the next check.
  SaveActions Obey(SaveActions actions, const Pending& last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Log(actions);
    if (!actions.write && !actions.mark) return actions;
    if (actions.write) {
      Begin(last);
    } else {
      schedule.OnBeginMark(clock->Monotonic());
      Hand(last, true);
    }
    return schedule.OnTime(clock->Monotonic());
  }
  void Hand(Pending pending, bool only_mark) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    state = std::move(pending);
    mark = only_mark;
    begun_at = clock->Now();
    written.Clear();
    work.NotifyAll();
  }

  const SaverOptions options;
  Mutex mutex;
  CondVar work;   // there is something to write, or the saver is being destroyed
  Event written;  // set when a write ends
  Clock* clock ABSL_GUARDED_BY(mutex);
  SaveSchedule schedule ABSL_GUARDED_BY(mutex);
  std::optional<Pending> state ABSL_GUARDED_BY(mutex);  // the state that is being written
  std::optional<Pending> next ABSL_GUARDED_BY(mutex);   // the state to write after `state`
  bool mark ABSL_GUARDED_BY(mutex) = false;             // only the marker is being written
  Time begun_at ABSL_GUARDED_BY(mutex);
  std::string shown ABSL_GUARDED_BY(mutex);
  bool leaving ABSL_GUARDED_BY(mutex) = false;
  // True if the saver has been destroyed. The thread must then not use any object of the saver's
  // owner.
  bool abandoned ABSL_GUARDED_BY(mutex) = false;
};

CheckpointSaver::CheckpointSaver(SaverOptions options, Clock& clock)
    : clock_(clock), shared_(std::make_shared<Shared>(std::move(options), clock)) {
  if (!shared_->options.write) return;
  thread_ = std::thread([shared = shared_] {
    SetThreadName("checkpoint");
    Run(shared);
  });
}

CheckpointSaver::~CheckpointSaver() {
  if (!thread_.joinable()) return;
  const Duration deadline = clock_.Monotonic() + kLeavePatience;
  bool writing = true;
  for (bool given_up = false; writing && !given_up;) {
    {
      MutexLock lock(shared_->mutex);
      writing = shared_->schedule.writing();
      given_up = shared_->abandoned || clock_.Monotonic() >= deadline;
      shared_->leaving = true;
      shared_->abandoned = shared_->abandoned || (writing && given_up);
      shared_->work.NotifyAll();
    }
    if (writing && !given_up) shared_->written.WaitFor(deadline - clock_.Monotonic());
  }
  if (writing) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

bool CheckpointSaver::Due(int64_t step) {
  if (!enabled()) return false;
  MutexLock lock(shared_->mutex);
  const SaveActions actions = shared_->schedule.OnStep(step, clock_.Monotonic());
  shared_->Log(actions);
  return actions.write;
}

void CheckpointSaver::Abandon() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(shared_->mutex);
    shared_->leaving = shared_->abandoned = true;
    shared_->next.reset();
    shared_->work.NotifyAll();
  }
  thread_.detach();
}

void CheckpointSaver::Save(state::SnapshotCopy snapshot, int64_t term) {
  MutexLock lock(shared_->mutex);
  shared_->Begin({std::move(snapshot), term});
}

void CheckpointSaver::SaveNext(state::SnapshotCopy snapshot, int64_t term) {
  MutexLock lock(shared_->mutex);
  Pending pending{std::move(snapshot), term};
  if (shared_->state) {
    shared_->next = std::move(pending);
  } else {
    shared_->Begin(std::move(pending));
  }
}

void CheckpointSaver::Require() {
  MutexLock lock(shared_->mutex);
  shared_->schedule.Require();
}

void CheckpointSaver::Restored(int64_t step) {
  MutexLock lock(shared_->mutex);
  if (shared_->next && shared_->next->snapshot.global_step() == step) return;  // not saved yet
  shared_->schedule.OnRestored(step, clock_.Monotonic());
}

std::optional<state::Snapshot> CheckpointSaver::InFlight() const {
  std::optional<Pending> newest;
  {
    MutexLock lock(shared_->mutex);
    newest = shared_->next || shared_->mark ? shared_->next : shared_->state;
  }
  if (!newest) return std::nullopt;
  return newest->snapshot.Finish();
}

bool CheckpointSaver::AwaitWrites(Duration patience, const StopSource& stop) {
  const Duration deadline = clock_.Monotonic() + patience;
  for (;;) {
    {
      MutexLock lock(shared_->mutex);
      shared_->written.Clear();
      if (!shared_->state && !shared_->next) return true;
    }
    const Duration left = deadline - clock_.Monotonic();
    if (left <= Duration{0} || stop.WaitFor(left, shared_->written)) return false;
  }
}

std::optional<int64_t> CheckpointSaver::saved_step() const {
  MutexLock lock(shared_->mutex);
  return shared_->schedule.saved_step();
}

Status CheckpointSaver::SaveBeforeExit(state::Snapshot last, int64_t term) {
  return enabled() ? Await(last, term, nullptr) : OkStatus();
}

Status CheckpointSaver::SaveLast(state::Snapshot last, const StopSource& stop, int64_t term) {
  return enabled() ? Await(last, term, &stop) : OkStatus();
}

Status CheckpointSaver::WhyNotAwait(const state::Snapshot& last, bool ending) const {
  if (ending && shared_->options.may_write) {
    const Status right = shared_->options.may_write();
    if (!right.ok()) return Aborted(Message(right));
  }
  MutexLock lock(shared_->mutex);
  SaveSchedule& schedule = shared_->schedule;
  if (schedule.writing() || schedule.saved_step() == last.global_step || !state::IsLost(last)) {
    return OkStatus();
  }
  return Unavailable("the state of step ", last.global_step,
                     " was lost before it was saved: the tasks that held it were lost");
}

Status CheckpointSaver::Await(const state::Snapshot& last, int64_t term, const StopSource* stop) {
  const int64_t step = last.global_step;
  bool ending = stop != nullptr;
  bool asked = !ending;  // whether the schedule knows of the stop request, if any
  for (bool first = true;; first = false) {
    Duration timeout;
    const Status useless = WhyNotAwait(last, ending);
    {
      MutexLock lock(shared_->mutex);
      shared_->written.Clear();
      shared_->next.reset();  // `last` is at least as new
      const Duration now = clock_.Monotonic();
      SaveSchedule& schedule = shared_->schedule;
      SaveActions actions = asked   ? schedule.OnStop(step, now)
                            : first ? schedule.OnEnd(step, now)
                                    : schedule.OnTime(now);
      if (!actions.result && !useless.ok()) {
        schedule.Resume();
        return useless;
      }
      actions = shared_->Obey(std::move(actions), {last, term});
      if (actions.result) {
        shared_->abandoned = schedule.writing();
        const bool stopped = stop != nullptr && !ending;
        return stopped && actions.result->ok() ? Cancelled("asked to stop at step ", step)
                                               : *actions.result;
      }
      timeout = *actions.wake_at - now;
    }
    if (ending && shared_->options.may_write) timeout = std::min(timeout, kAskEvery);
    asked = ending && stop->WaitFor(timeout, shared_->written);
    if (!ending) shared_->written.WaitFor(timeout);
    ending = ending && !asked;
  }
}

void CheckpointSaver::Run(const std::shared_ptr<Shared>& shared) {
  MutexLock lock(shared->mutex);
  for (;;) {
    while (!shared->state && !shared->leaving) shared->work.Wait(shared->mutex);
    if (!shared->state) return;
    // Only this thread resets the state, so the reference stays valid while the lock is released.
    const state::SnapshotCopy& snapshot = shared->state->snapshot;
    const int64_t term = shared->state->term;
    const bool mark = shared->mark;
    const Time now = shared->begun_at;
    shared->mutex.Unlock();
    const Status result = [&] {
      const trace::Span span(trace::Category::kState, mark ? "mark the end" : "write a checkpoint");
      return mark ? shared->options.mark(snapshot.global_step(), now)
                  : shared->options.write(snapshot.Finish(), now, term);
    }();
    shared->mutex.Lock();
    shared->state.reset();
    if (!shared->abandoned)
      shared->Log(shared->schedule.OnWritten(result, shared->clock->Monotonic()));
    if (shared->next && !shared->abandoned) {
      Pending next = *std::move(shared->next);
      shared->next.reset();
      shared->Begin(std::move(next));
      continue;
    }
    shared->written.Set();
  }
}

}  // namespace tfjob::train
