// Decides when a job has succeeded.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// With a Chief or Master: true if all of its replicas are done, whatever the workers do. Otherwise,
// with Workers: true if worker 0 exited with code 0 (not under AllWorkers), or all workers are
// done. Otherwise: true if all replicas of all types are done. A type with 0 replicas counts as
// absent, and a job without any replica never succeeds.
bool HasSucceeded(const api::TFJob& job, const Replicas& replicas);

}  // namespace tfjob::policy
