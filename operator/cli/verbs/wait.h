// tfjob wait: waits until jobs are in a state or can no longer reach it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/cli/verbs/cluster.h"
#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

// A state to wait for.
struct WaitGoal {
  bool deletion = false;
  api::ConditionType condition = api::ConditionType::kSucceeded;
  bool value = true;  // the condition's

  // Parses "Succeeded", "condition=Running", "condition=Suspended=false" or "delete", in any letter
  // case. InvalidArgument for other words.
  static StatusOr<WaitGoal> Parse(std::string_view text);
  std::string ToString() const;
};

struct WaitOptions {
  std::vector<std::string> names;
  std::vector<WaitGoal> goals;      // any of them suffices
  std::optional<Duration> timeout;  // nullopt: no limit
};

// Returns whether the job has reached one of the goals; FailedPrecondition if it never will,
// because it has ended otherwise.
StatusOr<bool> Reached(const api::TFJob& job, const std::vector<WaitGoal>& goals);

// Waits for the jobs. Returns kFailed if a job does not reach its goal: the timeout expired, it
// ended otherwise, it was deleted, or it does not exist.
int Wait(const WaitOptions& options, const VerbContext& context);

}  // namespace tfjob::cli
