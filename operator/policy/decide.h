// Decides what to do about a job, given its observed state and the time.
//
// Decide is pure and stateless: it uses no clock, no I/O and no memory of earlier calls. It is
// idempotent: after the verdict's status has been written to the job, the same observations lead to
// a verdict with the same status, the same objects, and no events except standing events. Its
// running time is linear in the number of pods and indexes. decide.cc is a list of decisions, each
// of which has its own file.
//
// The caller must ensure:
//  * `job` has defaults (api::SetDefaults) and is valid (otherwise, call Refuse). Its status is the
//    newest status known. Pod events may overtake job events, so while the caller's cache is
//    behind, the newest status is the one that the caller itself last wrote and the server
//    acknowledged.
//  * Actions are executed in the order of the Plan (plan/plan.h): first creates, then the status
//    write, which must be acknowledged, then deletes, and finally events. If the status write
//    fails, the deletes and events of this verdict must not be executed.
//  * Creating a pod or service counts as a success if it already exists and belongs to this job (by
//    UID). If it belongs to another owner, its name is added to History::blocked_pods or
//    blocked_services.
#pragma once

#include "operator/policy/facts/decision_options.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"
#include "runtime/base/status.h"

namespace tfjob::policy {

Verdict Decide(const api::TFJob& job, const Snapshot& snapshot, Time now,
               const DecisionOptions& options);

// Marks as Failed a job that cannot run because its validation or rendering failed permanently. The
// condition contains the message of `why`. Then cleans up and applies the TTL, as for any job that
// has ended. If the job has already ended, only cleans up, as Decide does.
Verdict Refuse(const api::TFJob& job, const Snapshot& snapshot, const Status& why, Time now,
               const DecisionOptions& options);

}  // namespace tfjob::policy
