// Receives measurements of the control loop. Several workers may call an observer at the same time.
// Implementations must return quickly and must not call the control loop. The default
// implementations do nothing.
#pragma once

#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/kind.h"
#include "operator/objects/metadata.h"
#include "runtime/base/clock.h"

namespace tfjob::control {

enum class Result { kSuccess, kError, kRequeue, kRequeueAfter };

class Observer {
 public:
  virtual ~Observer() = default;

  // Called after the server has acknowledged that the status of `job` has changed from `before` to
  // `after`.
  virtual void OnStatus(const objects::ObjectMeta& /*job*/, const api::TFJobStatus& /*before*/,
                        const api::TFJobStatus& /*after*/) {}
  // Called after a job's object has been created, could not be created, or has been deleted,
  // respectively. Deleted objects include TFJobs whose TTL has expired.
  virtual void OnCreated(objects::Kind /*kind*/, const std::string& /*name_space*/) {}
  virtual void OnCreateFailed(objects::Kind /*kind*/, const std::string& /*name_space*/) {}
  virtual void OnDeleted(objects::Kind /*kind*/, const std::string& /*name_space*/) {}

  virtual void OnReconciled(Result /*result*/, Duration /*took*/) {}

  // Called by the work queue after a key has been added, taken, processed, or scheduled for a
  // retry, respectively. `waited` is the time that the key spent in the queue, and `worked` the
  // processing time.
  virtual void OnQueueAdd() {}
  virtual void OnQueueGet(Duration /*waited*/) {}
  virtual void OnQueueDone(Duration /*worked*/) {}
  virtual void OnQueueRetry() {}
};

// Returns an observer that does nothing and is never destroyed.
Observer& NoObserver();

}  // namespace tfjob::control
