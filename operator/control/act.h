// Carries out a Plan in order: adopts and creates, then the status write, which must be
// acknowledged, then deletes and events. Every completed action is recorded in the cache
// immediately, so that the next reconcile sees it.
#pragma once

#include <utility>
#include <vector>

#include "operator/control/create.h"
#include "operator/control/outcome.h"
#include "operator/control/settings.h"
#include "operator/control/tools.h"

namespace tfjob::plan {
struct Delete;
}

namespace tfjob::control {

struct Turn;

// Thread-safe, but only one worker at a time may act on a job.
class Actor {
 public:
  Actor(const Tools& tools, RecordEvent record)
      : tools_(tools), record_(std::move(record)), creator_(tools) {}

  // Returns the first error. Errors from sending events are not returned, because they do not
  // justify a retry. If the status cannot be written, the actions after it are skipped, and the
  // outcome is kReadAgain if the decision was based on an old version of the job, kJobIsGone if the
  // job does not exist, and the error otherwise.
  Outcome Act(const Turn& turn);

  // Makes creates in progress end after the current calls; Act then returns Cancelled.
  void Stop() { creator_.Stop(); }

 private:
  Status Adopt(const Turn& turn);
  Status ChangePodGroup(const Turn& turn);
  Outcome WriteStatus(const Turn& turn);
  Status DeleteAll(const Turn& turn);
  // Returns NotFound if the object with the wanted UID is gone.
  Status DeleteOne(const Turn& turn, const plan::Delete& wanted);
  Status RecordDelete(const Turn& turn, const plan::Delete& wanted, const Status& status);
  // Reports the deleted objects, with one event per kind. `results` belong to the first deletes of
  // the plan.
  void ReportDeletes(const Turn& turn, const std::vector<Status>& results);

  const Tools tools_;
  const RecordEvent record_;
  Creator creator_;
};

}  // namespace tfjob::control
