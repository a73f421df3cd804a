// Creates the objects of a plan, in growing batches, and records what became of each: in the cache,
// in the job's history, in events.
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "operator/control/outcome.h"
#include "operator/control/report.h"
#include "operator/control/tools.h"
#include "operator/control/turn.h"
#include "operator/policy/facts/history.h"
#include "operator/render/render.h"

namespace tfjob::control {

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

  struct CreateResult {
    Status status;                              // OK: one of the two below is set
    std::optional<client::Object> object;       // ours, which now exists
    std::optional<policy::BlockedName> holder;  // the object of another owner that holds the name
    // The object already existed, so an earlier pass may have reported it. Its event is named after
    // this object alone, and is sent once.
    bool was_there = false;
  };
  struct BatchResult {
    Outcome of_all;  // the first one that all further objects would meet too
    Status of_one;   // the first error that concerns one object
    std::set<api::ReplicaType> refused;
  };

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
