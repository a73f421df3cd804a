// Changes the spec of one job even if other clients write it at the same time.
#pragma once

#include <functional>

#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

// Returns the merge patch to apply to the spec of the job, given the job's current state; null if
// there is nothing to change. May be called several times.
using MakePatch = std::function<StatusOr<Json>(const StoredJob&)>;

// Patches the job if it is still at the version that `make` saw. On a conflict, reads the job and
// calls `make` again; gives up after a few conflicts. Returns whether anything was changed.
StatusOr<bool> ChangeSpec(Cluster& cluster, StoredJob job, const MakePatch& make);

// Returns FailedPrecondition if the job has ended, because `verb` would then have no effect.
Status CheckNotEnded(const api::TFJob& job, std::string_view verb);

}  // namespace tfjob::cli
