// Decides when the chief saves checkpoints. Implemented as a state machine whose events are the
// chief's steps, finished writes, the request to stop, the end of training, and the passing of
// time. Pure: no clock, no thread, no disk. CheckpointSaver (checkpoint_saver.h) reports events to
// it and carries out its actions.
//
//   training   A save that is due starts a write. Only one write is in progress at a time; a save
//              that becomes due during a write starts afterwards. A failed write is repeated with
//              the newest state after `retry`, which doubles up to `slowest_retry`; if another save
//              becomes due before the retry, it starts at once.
//   stopping   After the write in progress, one attempt to save the last step.
//   ending     As in stopping, but repeated every `retry` until it succeeds or `final_patience` has
//              elapsed. Then the marker of the run's end (run_mark.h) is written in the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::train {

struct SavePolicy {
  Duration every{600s};     // 0 for never; ignored if every_steps is set
  int64_t every_steps = 0;  // 0 for never
  Duration retry{10s};
  Duration slowest_retry{160s};
  Duration final_patience{600s};  // 0 for one attempt, however long it takes
  // A write that takes longer than this is reported: once while training, repeatedly while stopping
  // or ending.
  Duration slow{10s};
};

// Lists the actions that the caller must take after an event.
struct SaveActions {
  bool write = false;               // start to write the state, and call OnBegin
  bool mark = false;                // start to write the marker, and call OnBeginMark
  std::string warning;              // for the log; "" if none
  std::string note;                 // for the log, at level info; "" if none
  std::optional<Duration> wake_at;  // when to call OnTime; also call it after each OnWritten
  // In the phases stopping and ending, set once the caller need not wait any longer. OK if the last
  // step is saved, and otherwise Unavailable with a message that names the step and says why it is
  // not saved.
  std::optional<Status> result;
};

class SaveSchedule {
 public:
  SaveSchedule(const SavePolicy& policy, Duration now);

  // Reports that a step has ended. Call it between steps, while training.
  SaveActions OnStep(int64_t step, Duration now);
  // Reports that the write that the last actions requested has started, with the state of `step`.
  void OnBegin(int64_t step, Duration now);
  void OnBeginMark(Duration now);
  // Reports that the write in progress has ended. In the phases stopping and ending, call OnTime
  // next.
  SaveActions OnWritten(const Status& status, Duration now);
  // Reports that the variables now have the state of a checkpoint of `step`. The intervals between
  // saves, in steps or in time, restart at this point.
  void OnRestored(int64_t step, Duration now);
  // Makes OnStep start a write as soon as no other write is in progress.
  void Require() { required_ = true; }

  // OnStop reports that the task was asked to stop, and OnEnd that training has ended. `step` is
  // the last step. A stop after the end takes precedence.
  SaveActions OnStop(int64_t step, Duration now);
  SaveActions OnEnd(int64_t step, Duration now);
  SaveActions OnTime(Duration now);
  // Reports that training continues after OnStop or OnEnd, because the last state was lost before
  // it was saved.
  void Resume() { last_.reset(); }

  bool writing() const { return write_.has_value(); }
  // Returns the step of the newest checkpoint known to be complete.
  std::optional<int64_t> saved_step() const { return saved_step_; }
  // Returns the problem with saving that users should know about; "" if there is none.
  const std::string& problem() const { return problem_; }

 private:
  struct Write {
    int64_t step = 0;
    bool mark = false;
    Duration begun{0};
    Duration reported{0};  // when the write was last reported as slow; `begun` if never
  };
  struct Last {  // the last state; used in the phases stopping and ending
    int64_t step = 0;
    bool stopping = false;
    Duration deadline{0};
    bool attempted = false;
    bool marked = false;
  };
  static std::string Name(const Write& write);

  bool Due(int64_t step, Duration now) const;
  Duration RetryDelay() const;
  void ReportSlow(Duration now, SaveActions& actions);
  Duration GiveUpAt() const;
  Status NotSaved() const;
  bool Done() const;
  std::string Newest() const;
  SaveActions AwaitWrite(Duration now);
  SaveActions Advance(Duration now);

  const SavePolicy policy_;
  std::optional<int64_t> saved_step_;
  std::optional<int64_t> base_step_;  // the start of the current intervals between saves
  Duration base_time_;
  bool required_ = false;
  std::optional<Write> write_;
  int failures_ = 0;  // since the last successful write
  Status failure_;
  Duration retry_at_{0};  // valid if failures_ > 0
  std::optional<Last> last_;
  std::string problem_;
};

}  // namespace tfjob::train
