// Defines flags and arguments that several verbs share: names of TFJobs, selections, replicas.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/flags/flag_set.h"
#include "operator/cli/verbs/replica_choice.h"
#include "operator/cli/verbs/stored_job.h"
#include "operator/client/client.h"

namespace tfjob::cli {

// Adds the argument JOB, the name of one TFJob.
void AddJobName(FlagSet& flags, std::string& name);
// Adds the arguments JOB…, of which at least one is required.
void AddJobNames(FlagSet& flags, std::vector<std::string>& names);
// Adds the optional arguments JOB… and the flags -A and -l, which select TFJobs in other ways.
void AddSelection(FlagSet& flags, Selection& selection);
// Adds --replica. RunChecks() parses its values into `choice`.
void AddReplicaChoice(FlagSet& flags, ReplicaChoice& choice);

// Parses "team=a,tier==b" as labels that an object must have. Returns InvalidArgument for any
// other operator.
StatusOr<client::LabelSelector> ParseSelector(const std::string& text);

}  // namespace tfjob::cli
