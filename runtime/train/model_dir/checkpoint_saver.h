// Saves checkpoints in the background: the caller passes a snapshot (a copy of the state) and
// continues training, while a thread finishes the copy and writes it. SaveSchedule decides when to
// save; this class provides the thread, the clock and the log. A failing save or a hanging disk
// never blocks the caller: the problem is logged and shown, and the save is retried.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/base/stop.h"
#include "runtime/state/snapshot.h"
#include "runtime/state/snapshot_copy.h"
#include "runtime/train/model_dir/save_schedule.h"

namespace tfjob::train {

struct SaverOptions {
  // `write` writes a checkpoint, and `mark` writes the marker of the run's end. These functions run
  // on the saver's thread. A hanging function may outlive the saver, so the functions must own the
  // objects that they use. If `write` is null, nothing is saved. `term` is the term of the state
  // (io::WriteRight).
  std::function<Status(const state::Snapshot& snapshot, Time now, int64_t term)> write;
  std::function<Status(int64_t step, Time now)> mark;
  // If set, returns an error once another task may have taken over; from then on, no attempt to
  // save can succeed. Any thread may call this function.
  std::function<Status()> may_write;
  // Called, on any thread, when the problem to show to users changes. `problem` is "" if there is
  // none.
  std::function<void(const std::string& problem)> show;
  SavePolicy policy;
};

// Owned by one thread.
class CheckpointSaver {
 public:
  // `clock` must outlive the saver.
  CheckpointSaver(SaverOptions options, Clock& clock);
  // Waits up to a minute for the write in progress, and then leaves the write to its thread.
  ~CheckpointSaver();

  bool enabled() const { return thread_.joinable(); }

  // Call after each step. Returns true if the caller should pass the state to Save now.
  bool Due(int64_t step);
  // Starts to save the snapshot. Call only if Due has just returned true. `term`, here and below,
  // is passed to SaverOptions::write.
  void Save(state::SnapshotCopy snapshot, int64_t term = 0);
  // Saves a state that cannot be copied again. If a write is in progress, this state is written
  // directly after it. Replaces any state that is still waiting to be written.
  void SaveNext(state::SnapshotCopy snapshot, int64_t term = 0);
  // Makes Due return true as soon as no write is in progress.
  void Require();
  // Call when the variables have been restored from a checkpoint of `step`.
  void Restored(int64_t step);

  // Returns the newest snapshot being written or waiting to be written. It is newer than all
  // checkpoints.
  std::optional<state::Snapshot> InFlight() const;
  // Returns the step of the newest checkpoint known to be complete.
  std::optional<int64_t> saved_step() const;

  // Waits until no write is in progress, `patience` has passed, or `stop` is requested. Returns
  // whether no write is in progress.
  bool AwaitWrites(Duration patience, const StopSource& stop);

  // Saves the last state of a task that was asked to stop: waits for the write in progress, and
  // then tries once. Does nothing if there is a checkpoint of this step. Returns Unavailable, with
  // a message that names the step, if the state could not be saved.
  Status SaveBeforeExit(state::Snapshot last, int64_t term = 0);
  // Saves the last state of the run and marks the run as over. Keeps trying for the policy's
  // `final_patience`, and then returns Unavailable, like SaveBeforeExit. Also returns Unavailable
  // as soon as the state is lost (state::IsLost), and Aborted as soon as SaverOptions::may_write
  // fails; the caller may then save another state. If `stop` is requested during the call,
  // continues like SaveBeforeExit, and returns Cancelled if the state is saved.
  Status SaveLast(state::Snapshot last, const StopSource& stop, int64_t term = 0);

  // Stops saving without waiting: discards the state that is waiting to be written, and leaves the
  // write in progress to its thread. Afterwards, only the destructor may be called.
  void Abandon();

 private:
  struct Shared;
  struct Pending;
  static void Run(const std::shared_ptr<Shared>& shared);
  // Waits until `last` is saved or the schedule gives up. `stop` is null in a task that was asked
  // to stop.
  Status Await(const state::Snapshot& last, int64_t term, const StopSource* stop);
  // Returns an error if `last` can no longer be saved, so that there is no reason to wait. `ending`
  // is false in a task that was asked to stop.
  Status WhyNotAwait(const state::Snapshot& last, bool ending) const;

  Clock& clock_;
  const std::shared_ptr<Shared> shared_;  // shared with the thread, which may outlive the saver
  std::thread thread_;
};

}  // namespace tfjob::train
