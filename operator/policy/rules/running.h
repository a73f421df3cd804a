// Decides whether a job counts as running, and whether a restart still prevents that.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

struct History;

// Returns true if a replica that drives the job is running. The drivers are the job's Chiefs;
// without Chiefs, its Masters; without these, its Workers; and otherwise, all its replicas.
bool DriverRuns(const Replicas& replicas);

// Returns true if every slot that should have a live pod has one, that is, if no replacement is
// missing. Ignores slots whose names belong to objects of other owners.
bool ReplacementsExist(const api::TFJob& job, const Replicas& replicas, const History* history);

}  // namespace tfjob::policy
