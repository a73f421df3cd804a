// Carries out a Plan in a fixed order: adoptions, changes to the pod group and the NetworkPolicy,
// creates, the status write, deletes, events. The status write must be acknowledged before any
// object is deleted. Completed creates, status writes and deletes are recorded in the cache
// immediately, so that the next reconcile sees them.
#pragma once

#include <utility>
#include <vector>

#include "operator/control/create.h"
#include "operator/control/dependencies.h"
#include "operator/control/outcome.h"
#include "operator/control/settings.h"

namespace tfjob::plan {
struct Change;
struct Delete;
}  // namespace tfjob::plan

namespace tfjob::control {

struct ActContext;

// Executes plans. Thread-safe, but only one worker at a time may act on a job.
class Actor {
 public:
  Actor(const Dependencies& dependencies, RecordEvent record)
      : dependencies_(dependencies), record_(std::move(record)), creator_(dependencies) {}

  // Returns the first error. Errors from sending events are not returned, because an unsent event
  // is no reason to retry the reconcile. If the status cannot be written, skips the later actions.
  // In this case, the outcome is kReadAgain if the decision was based on an old version of the job,
  // kJobIsGone if the job does not exist, and the error otherwise.
  Outcome Act(const ActContext& context);

  // Makes Act create no more objects: it completes the calls in progress and then returns
  // Cancelled.
  void Stop() { creator_.Stop(); }

 private:
  Status Adopt(const ActContext& context);
  // Change the pod group and the NetworkPolicy to match the spec. If either call fails, the caller
  // must not create pods.
  Status ChangeAll(const ActContext& context);
  Status ChangeOne(const ActContext& context, const plan::Change& change);
  // Records the policy that the server returned for the change. Returns an error if a webhook
  // changed the policy's rules.
  Status RecordPolicyChange(const ActContext& context, const client::Object& changed);
  Outcome WriteStatus(const ActContext& context);
  Status DeleteAll(const ActContext& context);
  // Deletes one object. Returns NotFound if the object with the UID in `wanted` no longer exists.
  Status DeleteOne(const ActContext& context, const plan::Delete& wanted);
  Status RecordDelete(const ActContext& context, const plan::Delete& wanted, const Status& status);
  // Reports the deleted objects, with one event per kind. `results[i]` is the result of deletes[i]
  // of the plan; deletes without a result have not been attempted.
  void ReportDeletes(const ActContext& context, const std::vector<Status>& results);

  const Dependencies dependencies_;
  const RecordEvent record_;
  Creator creator_;
};

}  // namespace tfjob::control
