// tfjob wait: until jobs are in a state, or cannot come into it any more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/cli/verbs/cluster.h"
#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

// What is waited for.
struct WaitGoal {
  bool deletion = false;
  api::ConditionType condition = api::ConditionType::kSucceeded;
  bool value = true;  // the condition's

  // "Succeeded", "condition=Running", "condition=Suspended=false", "delete", in any letter case.
  // InvalidArgument for other words.
  static StatusOr<WaitGoal> Parse(std::string_view text);
  std::string ToString() const;
};

struct WaitOptions {
  std::vector<std::string> names;
  std::vector<WaitGoal> goals;      // any of them
  std::optional<Duration> timeout;  // nothing: as long as it takes
};

// Whether the job has reached one of the goals. FailedPrecondition when it never will, since it has
// ended otherwise.
StatusOr<bool> Reached(const api::TFJob& job, const std::vector<WaitGoal>& goals);

// kFailed when a job does not reach its goal: the time is up, it ended otherwise, it was deleted,
// or there is none.
int Wait(const WaitOptions& options, const Surroundings& around);

}  // namespace tfjob::cli
