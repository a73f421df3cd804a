// Decides when a job has succeeded.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Returns true if the job has succeeded. If the job has a Chief or Master, all replicas of that
// type must be done; workers do not matter. Otherwise, if it has Workers, all of them must be done
// or, unless successPolicy is AllWorkers, worker 0 must have exited with 0. Otherwise, all replicas
// of all types must be done. A type with 0 replicas counts as absent. A job without any replica
// never succeeds.
bool HasSucceeded(const api::TFJob& job, const Replicas& replicas);

}  // namespace tfjob::policy
