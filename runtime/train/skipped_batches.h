// Counts the batches that a task leaves out because their numbers are not finite, and reports them:
// in the log and in the task's progress at once, then at most every 10 s.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/train/log.h"
#include "runtime/train/progress_board.h"

namespace tfjob::train {

class SkippedBatches {
 public:
  // Both must outlive this object.
  SkippedBatches(Clock& clock, ProgressBoard& board) : clock_(clock), board_(board) {}

  // Counts a batch that was left out in `step`.
  void Add(int64_t step) {
    ++total_;
    ++untaken_;
    const Duration now = clock_.Monotonic();
    if (total_ > 1 && now - reported_ < kReportInterval) return;
    reported_ = now;
    kTrainLog.Warning("left out batches whose loss or gradients are not finite",
                      {{"batches", total_}, {"step", step}});
    board_.ShowProblem("numbers", StrCat(total_, total_ == 1 ? " batch" : " batches",
                                         " left out, as the loss or a gradient is not finite; the "
                                         "last one in step ",
                                         step));
  }
  // Returns the number of batches since the last call.
  int64_t Take() { return std::exchange(untaken_, 0); }

 private:
  Clock& clock_;
  ProgressBoard& board_;
  int64_t total_ = 0;
  int64_t untaken_ = 0;
  Duration reported_{0};
};

}  // namespace tfjob::train
