#include "runtime/strategy/group/shared_validation.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tfjob::strategy {
namespace {

// Evaluates this rank's part. Returns Cancelled if the task was asked to stop.
Status EvaluatePart(int rank, const std::vector<int>& validators,
                    const SharedValidation::Task& task, ValidationShare& share) {
  bool needed = true;
  const ValidationPart part{
      .part = static_cast<int>(std::ranges::find(validators, rank) - validators.begin()),
      .parts = static_cast<int>(validators.size()),
      .needed = [&] {
        task.announce(state::WorkPhase::kValidating);
        return needed = task.is_current();
      }};
  task.announce(state::WorkPhase::kValidating);
  const Status evaluated = task.validation->evaluate(part, share.totals);
  task.announce(state::WorkPhase::kNone);
  share.agreement = task.validation->agreement;
  share.complete = evaluated.ok() && needed;
  return evaluated;
}

}  // namespace

StatusOr<SharedValidation::Outcome> SharedValidation::Share(collectives::Communicator& communicator,
                                                            const Announcements& announcements,
                                                            std::span<const std::string> names,
                                                            const Task& task) {
  ValidationShare share;
  const ValidationShare* own = nullptr;
  Outcome outcome;
  const int with_result = announcements.RankWithResult();
  if (with_result == communicator.rank()) {
    own = &result_->share;
  } else if (with_result < 0 && task.validation != nullptr) {
    own = &share;
    outcome.evaluated = EvaluatePart(communicator.rank(), announcements.Validators(), task, share);
    if (!outcome.evaluated.ok() && !absl::IsCancelled(outcome.evaluated)) {
      communicator.Abort(outcome.evaluated);
      return outcome.evaluated;
    }
  }
  ValidationShares shares;
  outcome.exchanged = shares.Exchange(communicator, own);
  if (!outcome.exchanged.ok()) return outcome;
  ASSIGN_OR_RETURN(
      outcome.totals,
      shares.Sum(names, task.validation == nullptr ? nullptr : &task.validation->agreement));
  if (!outcome.totals) return outcome;
  result_ = Result{.drawn = task.drawn,
                   .share = {.agreement = shares.agreement(), .totals = *outcome.totals}};
  // A task that fails before this barrier gets the result from another one.
  (void)communicator.Barrier();
  return outcome;
}

}  // namespace tfjob::strategy
