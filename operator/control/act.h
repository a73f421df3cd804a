// Carries out a Plan in its order: adopts and creates; the status, acknowledged; deletes; events.
// Every completed action is recorded in the cache at once, so that the next reconcile sees it.
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

// Thread-safe; one worker at a time per job.
class Actor {
 public:
  Actor(const Tools& tools, RecordEvent record)
      : tools_(tools), record_(std::move(record)), creator_(tools) {}

  // Returns the first error, except for events: they are no reason to retry. If the status cannot
  // be written, nothing that follows it is done: kReadAgain if it was decided from an old version
  // of the job, kJobIsGone if there is no job, otherwise the error.
  Outcome Act(const Turn& turn);

  // Ends large plans in progress after the calls that are under way; Act then returns Cancelled.
  void Stop() { creator_.Stop(); }

 private:
  Status Adopt(const Turn& turn);
  Status ChangePodGroup(const Turn& turn);
  Outcome WriteStatus(const Turn& turn);
  Status DeleteAll(const Turn& turn);
  // NotFound: the object with that UID is gone.
  Status DeleteOne(const Turn& turn, const plan::Delete& wanted);
  Status RecordDelete(const Turn& turn, const plan::Delete& wanted, const Status& status);
  // Reports deleted objects in one event per kind. `results`: of the plan's first deletes.
  void ReportDeletes(const Turn& turn, const std::vector<Status>& results);

  const Tools tools_;
  const RecordEvent record_;
  Creator creator_;
};

}  // namespace tfjob::control
