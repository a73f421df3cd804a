// A change of one job's spec that takes what others write meanwhile into account.
#pragma once

#include <functional>

#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

// Gives the merge patch of the spec for the job as it is now, or null when there is nothing to
// change. May be called several times.
using MakePatch = std::function<StatusOr<Json>(const StoredJob&)>;

// Patches the job under the condition that it is the one that `make` saw; when somebody else was
// faster, reads it again and asks anew, a few times. Whether anything was changed.
StatusOr<bool> ChangeSpec(Cluster& cluster, StoredJob job, const MakePatch& make);

// FailedPrecondition for a job that has ended, for which nothing can be changed any more.
Status CheckNotEnded(const api::TFJob& job, std::string_view verb);

}  // namespace tfjob::cli
