// Creates the objects of a plan in batches of growing size, and records the result of each create
// in the cache, in the job's history and in events.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "operator/control/dependencies.h"
#include "operator/control/outcome.h"

namespace tfjob::render {
struct DesiredObject;
}

namespace tfjob::control {

struct Child;
struct ActContext;

// Creates objects. Thread-safe, but only one worker at a time may create a job's objects.
class Creator {
 public:
  explicit Creator(const Dependencies& dependencies) : dependencies_(dependencies) {}

  // Creates the plan's objects in order, up to the limit for one reconcile. Stops at an error that
  // would affect all further objects. Also stops if a pod group, a workload or the NetworkPolicy
  // cannot be created: without a group or workload, the scheduler would place the pods one by one,
  // and without the policy, the pods would be unprotected. Returns the first error, Cancelled after
  // Stop(), or kJobIsGone if the job or its namespace is gone or being deleted.
  Outcome CreateAll(const ActContext& context);

  // Makes CreateAll stop after the calls in progress.
  void Stop() { stopping_ = true; }

 private:
  using Wanted = std::span<const render::DesiredObject>;

  struct CreateResult;
  struct BatchResult;

  // CreateKind creates objects of one kind, and reports them in one event.
  Outcome CreateKind(const ActContext& context, Wanted wanted);
  Outcome CreateInBatches(const ActContext& context, Wanted wanted, std::vector<Child>& created);
  BatchResult CreateBatch(const ActContext& context, Wanted wanted, std::vector<Child>& created);
  CreateResult CreateOne(const ActContext& context, const render::DesiredObject& wanted);
  // Reads the object after a create that failed because the name was taken, or that returned an
  // error but may have been executed.
  CreateResult ReadExisting(const ActContext& context, const render::DesiredObject& wanted,
                            const Status& create_error);
  // Record the result of a create.
  Outcome Record(const ActContext& context, const render::DesiredObject& wanted,
                 CreateResult result, std::vector<Child>& created);
  Outcome RecordFailure(const ActContext& context, const render::DesiredObject& wanted,
                        Status error);
  void RecordObject(const ActContext& context, const render::DesiredObject& wanted,
                    const CreateResult& result, std::vector<Child>& created);

  const Dependencies dependencies_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace tfjob::control
