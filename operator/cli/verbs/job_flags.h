// Defines flags and arguments that several verbs share: names of TFJobs, selections, replicas.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/flags/flag_set.h"
#include "operator/cli/verbs/replica_choice.h"
#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

// Adds the argument JOB, the name of one TFJob.
void AddJobName(FlagSet& flags, std::string& name);
// Adds the arguments JOB…, at least one.
void AddJobNames(FlagSet& flags, std::vector<std::string>& names);
// Adds the arguments JOB…, which are optional, and flags that select TFJobs in other ways.
void AddSelection(FlagSet& flags, Selection& selection);
// Adds --replica. A check of `flags` parses it into `choice`.
void AddReplicaChoice(FlagSet& flags, ReplicaChoice& choice);

// Parses "team=a,tier==b" as labels that an object must have. Returns InvalidArgument for any
// other operator.
StatusOr<client::LabelSelector> ParseSelector(const std::string& text);

}  // namespace tfjob::cli
