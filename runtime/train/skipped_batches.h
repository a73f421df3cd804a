// Counts the batches of a task that were computed but not used, for one particular reason. Reports
// them in the log and in the task's progress: the first batch immediately, later ones at most every
// 10 s.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/train/log.h"
#include "runtime/train/progress_board.h"

namespace tfjob::train {

struct SkipReason {
  const char* problem;  // the `what` argument of ProgressBoard::ShowProblem
  const char* log;      // the message in the log
  const char* why;      // the words between number and step in the problem
};
inline constexpr SkipReason kNotFinite = {
    "numbers", "left out batches whose loss or gradients are not finite",
    " left out, as the loss or a gradient is not finite; the last one in step "};
inline constexpr SkipReason kTooStale = {
    "staleness", "dropped gradients that were staler than strategy.max_staleness",
    " dropped, as the gradients were staler than strategy.max_staleness; the last one in step "};

class SkippedBatches {
 public:
  // All arguments must outlive this object.
  SkippedBatches(Clock& clock, ProgressBoard& board, const SkipReason& reason)
      : clock_(clock), board_(board), reason_(reason) {}

  // Counts a batch that was not used in `step`.
  void Add(int64_t step) {
    ++total_;
    ++untaken_;
    const Duration now = clock_.Monotonic();
    if (total_ > 1 && now - reported_ < kReportInterval) return;
    reported_ = now;
    kTrainLog.Warning(reason_.log, {{"batches", total_}, {"step", step}});
    board_.ShowProblem(reason_.problem,
                       StrCat(total_, total_ == 1 ? " batch" : " batches", reason_.why, step));
  }
  // Returns the number of batches that have been added since the last call.
  int64_t Take() { return std::exchange(untaken_, 0); }

 private:
  Clock& clock_;
  ProgressBoard& board_;
  const SkipReason& reason_;
  int64_t total_ = 0;
  int64_t untaken_ = 0;
  Duration reported_{0};
};

}  // namespace tfjob::train
