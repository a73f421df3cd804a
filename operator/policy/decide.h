// Decides what to do about one job, given what was observed of it and the time.
//
// Pure and stateless: no clock, no I/O, no memory. Idempotent: given the verdict's status in the
// job and the same observations, the next verdict has the same status, no further events (except
// standing ones) and the same objects. decide.cc reads as a list, with one decision per file. Runs
// in time linear in the number of pods and indexes.
//
// The caller must ensure:
//  * `job` has defaults (api::SetDefaults) and passed validation (otherwise call Refuse). Its
//    status is the newest known: while the caller's cache is behind, that is the status of the
//    caller's own last acknowledged write, since pod events may overtake job events.
//  * Actions follow the order of the Plan (plan/plan.h): creates; the status, acknowledged; only
//    then deletes; events last. If the status write fails, neither deletes nor events of this
//    verdict may happen.
//  * A wanted pod or service that turns out to exist under our UID counts as a success. One under
//    another UID goes into History::blocked_pods or blocked_services.
#pragma once

#include "operator/policy/facts/options.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"
#include "runtime/base/status.h"

namespace tfjob::policy {

Verdict Decide(const api::TFJob& job, const Snapshot& snapshot, Time now, const Options& options);

// Fails a job that cannot be run because validation or rendering failed permanently with `why`,
// using that message; then cleans up and applies the TTL as for every job that has ended. A job
// that has already ended is treated as by Decide.
Verdict Refuse(const api::TFJob& job, const Snapshot& snapshot, const Status& why, Time now,
               const Options& options);

}  // namespace tfjob::policy
