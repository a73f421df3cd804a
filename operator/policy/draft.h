// Represents a verdict under construction: the inputs of the steps of Decide, and the few functions
// that these steps use to change the verdict.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/policy/facts/decision_options.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"

namespace tfjob::policy {

class Draft {
 public:
  // All arguments must outlive the draft.
  Draft(const api::TFJob& job, const Snapshot& snapshot, Time now, const DecisionOptions& options);

  const api::TFJob& job;
  const Snapshot& snapshot;
  const Time now;
  const DecisionOptions& options;
  Verdict verdict;  // starts with the job's status
  Replicas replicas;
  // True if no pod or service may be created yet: the pod group has not been admitted to its queue,
  // cannot be created or must be recreated, or the job requests a NetworkPolicy that it cannot get.
  bool waits_for_queue = false;
  // True if the job requests a NetworkPolicy, but this operator creates none.
  bool lacks_network_policy = false;
  // The time until the NetworkPolicy gets the wanted rules, during which no pods may be created;
  // nullopt if the change is not delayed.
  std::optional<Duration> policy_changes_in;
  // The reason why the pod group cannot be created or, if it can, why the NetworkPolicy cannot be
  // created; "" if both can.
  std::string obstacle;
  // Selects which pods of Snapshot::departed `replicas` includes:
  //  - none if this reconcile resumes the job: departed pods are from before the suspension;
  //  - only completed pods if the job is suspended, because failures then no longer matter;
  //  - all of them otherwise.
  DepartedPods departed = DepartedPods::kAll;

  api::TFJobStatus& status() { return verdict.status; }
  const History* history() const { return snapshot.history; }
  std::string NameOf(const Slot& slot) const;

  // Recomputes `replicas` (Arrange) from the verdict's current status.
  void Rearrange();
  // Adds the event, unless it is a standing event that has already been reported.
  void AddEvent(JobEvent event);
  void AddEvent(objects::EventType type, std::string reason, std::string message,
                std::string cause);
  // Requests a reconcile after at most `delay`.
  void RequeueAfter(Duration delay);
  void DeletePod(const objects::Pod& pod, DeleteReason reason);

  // Returns the verdict, with its lists in slot order. If no change in the verdict's status is
  // worth a write, replaces that status with the job's own.
  Verdict Finish();
};

}  // namespace tfjob::policy
