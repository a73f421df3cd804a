// tfjob wait: waits until jobs have reached a state or can no longer reach it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/cli/verbs/cluster.h"
#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

// Describes a state to wait for.
struct WaitGoal {
  bool deletion = false;
  api::ConditionType condition = api::ConditionType::kSucceeded;
  bool value = true;  // the value that the condition must have

  // Parses "Succeeded", "condition=Running", "condition=Suspended=false" or "delete", in any letter
  // case. Returns InvalidArgument for any other text.
  static StatusOr<WaitGoal> Parse(std::string_view text);
  std::string ToString() const;
};

struct WaitOptions {
  std::vector<std::string> names;
  std::vector<WaitGoal> goals;      // reaching any of them suffices
  std::optional<Duration> timeout;  // nullopt for no limit
};

// Returns whether the job has reached one of the goals, or FailedPrecondition if it never will,
// because it has ended in another state.
StatusOr<bool> Reached(const api::TFJob& job, const std::vector<WaitGoal>& goals);

// Waits for the jobs. Returns kFailed if a job does not exist, or if it does not reach a goal
// because the timeout expires, the job ends in another state, or the job is deleted.
int Wait(const WaitOptions& options, const VerbContext& context);

}  // namespace tfjob::cli
