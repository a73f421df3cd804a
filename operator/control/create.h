// Creates the objects of a plan, in growing batches, and records what became of each: in the cache,
// in the job's history, in events.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "operator/control/outcome.h"
#include "operator/control/tools.h"

namespace tfjob::render {
struct DesiredObject;
}

namespace tfjob::control {

struct Child;
struct Turn;

// Thread-safe; one worker at a time per job.
class Creator {
 public:
  explicit Creator(const Tools& tools) : tools_(tools) {}

  // Creates the plan's objects in its order, as many as one reconcile may. An error ends it if it
  // would meet all further objects, or if a pod group or workload is missing: without their group,
  // pods would be placed one by one. Returns the first error, or Cancelled after Stop(); kJobIsGone
  // if the job or its namespace is gone or being deleted.
  Outcome CreateAll(const Turn& turn);

  // Ends CreateAll after the calls that are under way.
  void Stop() { stopping_ = true; }

 private:
  using Wanted = std::span<const render::DesiredObject>;

  struct CreateResult;
  struct BatchResult;

  // Creates objects of one kind; reports them in one event.
  Outcome CreateKind(const Turn& turn, Wanted wanted);
  Outcome CreateInBatches(const Turn& turn, Wanted wanted, std::vector<Child>& created);
  BatchResult CreateBatch(const Turn& turn, Wanted wanted, std::vector<Child>& created);
  CreateResult CreateOne(const Turn& turn, const render::DesiredObject& wanted);
  // Reads the object after a create that met an existing name, or that may have been executed.
  CreateResult ReadExisting(const Turn& turn, const render::DesiredObject& wanted,
                            const Status& create_error);
  // Record what became of a create.
  Outcome Record(const Turn& turn, const render::DesiredObject& wanted, CreateResult result,
                 std::vector<Child>& created);
  Outcome RecordFailure(const Turn& turn, const render::DesiredObject& wanted, Status error);
  void RecordObject(const Turn& turn, const render::DesiredObject& wanted,
                    const CreateResult& result, std::vector<Child>& created);

  const Tools tools_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace tfjob::control
