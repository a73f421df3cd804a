// The heart of the operator: one job, what was observed of it, and the time → what to do.
//
// Pure and stateless: no clock, no I/O, nothing kept. Idempotent: with the verdict's status in the
// job and the same observations, the next verdict has the same status, no further events (standing
// ones apart) and the same objects. Reading: decide.cc is a list, one decision a file. Linear in
// the number of pods and indexes.
//
// What the caller owes:
//  * `job` carries defaults (api::SetDefaults) and passed validation (else Refuse). Its status is
//  the newest known: that
//    of the caller's own last acknowledged write while its cache is behind, since pods' events may
//    overtake the job's.
//  * The order of acting is the Plan's (plan/plan.h): creates; the status, acknowledged; only then
//  deletes; events last.
//    When the status write fails, neither deletes nor events of this verdict may happen.
//  * A wanted pod or service that turns out to exist under our UID is a success; one under another
//  UID goes into
//    History::blocked_pods or blocked_services.
#pragma once

#include "operator/policy/facts/options.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"
#include "runtime/base/status.h"

namespace tfjob::policy {

Verdict Decide(const api::TFJob& job, const Snapshot& snapshot, Time now, const Options& options);

// For a job that cannot be run (validation or rendering said `why`, permanently): Failed with that
// message, then clean-up and TTL as for every job that ended. A job that ended already is treated
// as by Decide.
Verdict Refuse(const api::TFJob& job, const Snapshot& snapshot, const Status& why, Time now,
               const Options& options);

}  // namespace tfjob::policy
