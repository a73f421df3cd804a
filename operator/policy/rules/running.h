// Decides whether a job counts as running, and whether a restart still prevents that.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

struct History;

// Returns true if a replica that drives the job is running. The job is driven by its Chiefs; if it
// has none, by its Masters; if it has none of these either, by its Workers; and otherwise, by all
// replicas.
bool DriverRuns(const Replicas& replicas);

// Returns true if every slot that should have a live pod has one, that is, if no replacement is
// missing. Slots whose names other owners hold are not considered.
bool ReplacementsExist(const api::TFJob& job, const Replicas& replicas, const History* history);

}  // namespace tfjob::policy
