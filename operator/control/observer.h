// What the control loop tells whoever measures it. Calls come from workers, several at once; they return quickly and do
// not call back. By default nobody listens.
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

  // The server has acknowledged that the status of `job` went from `before` to `after`.
  virtual void OnStatus(const objects::ObjectMeta& /*job*/, const api::TFJobStatus& /*before*/,
                        const api::TFJobStatus& /*after*/, Time /*now*/) {}
  // Objects of jobs, and TFJobs deleted when their time to live was over.
  virtual void OnCreated(client::Kind /*kind*/, const std::string& /*name_space*/) {}
  virtual void OnCreateFailed(client::Kind /*kind*/, const std::string& /*name_space*/) {}
  virtual void OnDeleted(client::Kind /*kind*/, const std::string& /*name_space*/) {}

  virtual void OnReconciled(Result /*result*/, Duration /*took*/) {}

  // The work queue: a key is added, is taken after it waited, was worked on, failed and is to be tried again.
  virtual void OnQueueAdd() {}
  virtual void OnQueueGet(Duration /*waited*/) {}
  virtual void OnQueueDone(Duration /*worked*/) {}
  virtual void OnQueueRetry() {}
};

// One that listens to nothing; lives for ever.
Observer& NoObserver();

}  // namespace tfjob::control
