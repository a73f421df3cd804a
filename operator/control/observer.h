// Receives measurements of the control loop. Calls come from workers, several at once;
// implementations must return quickly and not call back. By default nothing is observed.
#pragma once

#include <string>

#include "operator/api/tfjob.h"
#include "operator/client/client.h"
#include "runtime/base/clock.h"

namespace tfjob::control {

enum class Result { kSuccess, kError, kRequeue, kRequeueAfter };

class Observer {
 public:
  virtual ~Observer() = default;

  // The server has acknowledged that the status of `job` changed from `before` to `after`.
  virtual void OnStatus(const objects::ObjectMeta& /*job*/, const api::TFJobStatus& /*before*/,
                        const api::TFJobStatus& /*after*/, Time /*now*/) {}
  // Objects of jobs, and TFJobs deleted when their TTL expired.
  virtual void OnCreated(objects::Kind /*kind*/, const std::string& /*name_space*/) {}
  virtual void OnCreateFailed(objects::Kind /*kind*/, const std::string& /*name_space*/) {}
  virtual void OnDeleted(objects::Kind /*kind*/, const std::string& /*name_space*/) {}

  virtual void OnReconciled(Result /*result*/, Duration /*took*/) {}

  // The work queue: a key is added, is taken after waiting, was processed, failed and is
  // to be retried.
  virtual void OnQueueAdd() {}
  virtual void OnQueueGet(Duration /*waited*/) {}
  virtual void OnQueueDone(Duration /*worked*/) {}
  virtual void OnQueueRetry() {}
};

// Returns an observer that does nothing; it lives forever.
Observer& NoObserver();

}  // namespace tfjob::control
