// When a job has succeeded.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// With a Chief or Master: all of its replicas are done, whatever the workers do. Else, with
// Workers: worker 0 ended with code 0 (not under AllWorkers), or all workers are done. Else all
// replicas of all types are done. A type with 0 replicas counts as absent, and a job without any
// replica never succeeds.
bool HasSucceeded(const api::TFJob& job, const Replicas& replicas);

}  // namespace tfjob::policy
