// Checks the loss and the contributions of each of a task's batches for NaN and infinity, and
// decides whether the batch is applied or skipped, or the run fails (training_config.h,
// OnNonFinite).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/config/training_config.h"
#include "runtime/state/training_state.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::strategy {

// The number of consecutive batches that may be skipped. If even more batches are bad, the
// variables rather than the data are probably damaged, and the run would skip batches forever.
inline constexpr int kMaxSkippedInARow = 100;

// Owned by one thread. Allocates memory only to report an error, or to copy variables from a device
// that is not immediate.
class NumberCheck {
 public:
  // Error messages start with `task`, such as "worker 1", which may be empty. `variables`, and
  // `pool` unless it is null, must outlive the check.
  NumberCheck(config::OnNonFinite rule, std::string task,
              const std::vector<state::Variable>& variables, ThreadPool* pool);

  bool enabled() const { return rule_ != config::OnNonFinite::kContinue; }
  // Returns whether batches may be skipped. If so, no part of a batch may be applied before Verdict
  // has returned true.
  bool skips() const { return rule_ == config::OnNonFinite::kSkip; }

  // Starts a new batch.
  void Begin();
  // Checks the dense contribution to variable `v`, which may be empty. Returns whether all
  // contributions since Begin, including this one, are finite. Always returns true if the check is
  // disabled.
  bool Contribution(size_t v, std::span<const std::byte> contribution);
  // Like Contribution, for a contribution that the caller has already checked.
  bool CheckedContribution(size_t v, bool finite);
  // Like Contribution, but checks variable `v` after its update. Used for programs that never store
  // the gradient: if the gradient is not finite, neither is the updated variable.
  void Updated(size_t v, const variables::Variable& variable);
  // Like Updated, but checks only the rows with these indices, those of the gradient. The indices
  // may be padded with -1 at the end.
  void UpdatedRows(size_t v, const variables::Variable& variable, std::span<const int64_t> indices);

  // Reports that the batch's program has found a number that is not finite, and has changed no
  // variable. `what` is the program's error, which names the tensor.
  void Refused(std::string what) { refused_ = std::move(what); }

  // Returns true if the batch may be applied, and false if it must be skipped. Returns
  // state::RunFailure, with a message that names the step and the first tensor that is not finite
  // (the loss, then the variables in the model's order), if the run must stop. `step` is the step
  // in progress, counted from 1.
  StatusOr<bool> Verdict(double loss, int64_t step);
  // Returns the number of batches that were skipped in a row, up to the latest batch.
  int skipped_in_a_row() const { return skipped_in_a_row_; }
  void GoOnFrom(int skipped_in_a_row) { skipped_in_a_row_ = skipped_in_a_row; }

 private:
  std::string Culprit(double loss) const;

  const config::OnNonFinite rule_;
  const std::string task_;
  const std::vector<state::Variable>& variables_;
  ThreadPool* const pool_;
  size_t first_;  // the first variable that is not finite, or the number of variables
  bool updated_ = false;
  std::string refused_;  // by the program; "" if it has not refused the batch
  int skipped_in_a_row_ = 0;
};

}  // namespace tfjob::strategy
