#include "runtime/train/model_dir/save_schedule.h"

#include <algorithm>

#include "runtime/base/backoff.h"

namespace tfjob::train {
SaveSchedule::SaveSchedule(const SavePolicy& policy, Duration now)
    : policy_(policy), base_time_(now) {}

std::string SaveSchedule::Name(const Write& write) {
  return StrCat(write.mark ? "the mark that the run is over at step " : "the checkpoint of step ",
                write.step);
}

bool SaveSchedule::Due(int64_t step, Duration now) const {
  if (required_) return true;
  if (failures_ > 0 && now >= retry_at_) return true;
  if (step == base_step_) return false;
  if (policy_.every_steps > 0) return step - base_step_.value_or(0) >= policy_.every_steps;
  return policy_.every > 0s && now - base_time_ >= policy_.every;
}

SaveActions SaveSchedule::OnStep(int64_t step, Duration now) {
  SaveActions actions;
  if (!write_) {
    actions.write = Due(step, now);
  } else if (write_->reported == write_->begun) {
    ReportSlow(now, actions);
  }
  return actions;
}

void SaveSchedule::OnBegin(int64_t step, Duration now) {
  write_ = Write{.step = step, .begun = now, .reported = now};
  base_step_ = step;
  base_time_ = now;
  required_ = false;
  if (last_) last_->attempted = true;
}

void SaveSchedule::OnBeginMark(Duration now) {
  write_ = Write{.step = last_->step, .mark = true, .begun = now, .reported = now};
  last_->attempted = true;
}

SaveActions SaveSchedule::OnWritten(const Status& status, Duration now) {
  SaveActions actions;
  const Write write = *write_;
  write_.reset();
  failure_ = status;
  if (status.ok()) {
    if (failures_ > 0) {
      actions.note = StrCat(Name(write), " is saved; failed attempts before it: ", failures_);
    }
    if (!write.mark) saved_step_ = write.step;
    if (write.mark && last_) last_->marked = true;
    failures_ = 0;
    problem_.clear();
    return actions;
  }
  ++failures_;
  retry_at_ = now + RetryDelay();
  problem_ = StrCat(Name(write), " could not be saved: ", Message(status), "; ", Newest());
  actions.warning = problem_;
  if (!last_) actions.warning += "; training goes on";
  if (!last_ || (last_->attempted && !last_->stopping && retry_at_ <= last_->deadline))
    actions.warning += StrCat("; next attempt in ", FormatDuration(retry_at_ - now));
  return actions;
}

void SaveSchedule::OnRestored(int64_t step, Duration now) {
  base_step_ = step;
  base_time_ = now;
  // If the state comes from the write in progress, it is not saved yet.
  if (!write_ || write_->step != step) saved_step_ = step;
}

SaveActions SaveSchedule::OnStop(int64_t step, Duration now) {
  last_ = Last{.step = step, .stopping = true, .deadline = now};
  return Advance(now);
}

SaveActions SaveSchedule::OnEnd(int64_t step, Duration now) {
  last_ = Last{.step = step, .deadline = now + policy_.final_patience};
  return Advance(now);
}

SaveActions SaveSchedule::OnTime(Duration now) {
  return Advance(now);
}

Duration SaveSchedule::RetryDelay() const {
  if (last_) return policy_.retry;
  return BackoffDelay({.initial = policy_.retry, .maximum = policy_.slowest_retry}, failures_);
}

void SaveSchedule::ReportSlow(Duration now, SaveActions& actions) {
  if (now - write_->reported < policy_.slow) return;
  write_->reported = now;
  problem_ = StrCat(Name(*write_), " is still being written after ",
                    FormatDuration(now - write_->begun), ": the disk is slow or hangs; ", Newest());
  actions.warning = problem_;
}

// Returns the time at which to give up. Allows every write the full `final_patience`, because a
// write may start shortly before the deadline and still succeed.
Duration SaveSchedule::GiveUpAt() const {
  if (last_->stopping || policy_.final_patience == 0s) return Duration::max();
  return std::max(last_->deadline, write_->begun + policy_.final_patience);
}

std::string SaveSchedule::Newest() const {
  return saved_step_ ? StrCat("the newest one is of step ", *saved_step_) : "there is none yet";
}

Status SaveSchedule::NotSaved() const {
  const std::string why = write_ ? "its write does not end" : std::string(Message(failure_));
  const Write missing{.step = last_->step, .mark = saved_step_ == last_->step};
  return Unavailable(Name(missing), " was not saved: ", why, "; ", Newest());
}

SaveActions SaveSchedule::AwaitWrite(Duration now) {
  SaveActions actions;
  if (now >= GiveUpAt()) {
    actions.result = NotSaved();
    return actions;
  }
  ReportSlow(now, actions);
  actions.wake_at = std::min(GiveUpAt(), write_->reported + policy_.slow);
  return actions;
}

bool SaveSchedule::Done() const {
  return saved_step_ == last_->step && (last_->stopping || last_->marked);
}

SaveActions SaveSchedule::Advance(Duration now) {
  if (write_) return AwaitWrite(now);
  SaveActions actions;
  const bool saved = saved_step_ == last_->step;
  if (Done()) {
    actions.result = OkStatus();
  } else if ((saved && failures_ == 0) || !last_->attempted) {
    (saved ? actions.mark : actions.write) = true;
  } else if (last_->stopping || now >= last_->deadline) {
    actions.result = NotSaved();
  } else if (now >= retry_at_) {
    (saved ? actions.mark : actions.write) = true;
  } else {
    actions.wake_at = std::min(retry_at_, last_->deadline);
  }
  return actions;
}

}  // namespace tfjob::train
