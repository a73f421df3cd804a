// Arranges a job's pods by slot, and determines each slot's state. All other decisions are based on
// these states.
#pragma once

#include <vector>

#include "operator/api/indexes.h"
#include "operator/api/tfjob.h"
#include "operator/api/validate.h"
#include "operator/objects/pod.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::policy {

struct Snapshot;

// The maximum number of slots per type that Arrange considers, because each slot needs memory.
// api::Validate rejects jobs with more.
inline constexpr auto kMaxSlots = static_cast<int32_t>(api::kMaxReplicas);

enum class ReplicaState {
  kMissing,      // no pod
  kPending,      // has a pod that is not running yet
  kActive,       // phase Running, not terminating
  kCompleted,    // done for good: recorded in the status, or exited with 0; may have no pod
  kSucceeded,    // phase Succeeded, but not known to be done (policy Always, or no exit code)
  kFailed,       // failed permanently
  kRetryable,    // failed, to be restarted and counted
  kDisrupted,    // ended or terminating through no fault of its own; to be restarted, not counted
  kReplacing,    // ended, to be restarted; the status already records the restart
  kTerminating,  // being deleted; there is nothing to do but wait
  kOutdated,     // belongs to an earlier attempt
};

struct Replica {
  const objects::Pod* pod = nullptr;  // points into the snapshot
  ReplicaState state = ReplicaState::kMissing;
  // True if the pod no longer exists. In this case, `pod` is its last known state. The replica is
  // kMissing if the status already records that the pod is being replaced, and kCompleted, kFailed,
  // kRetryable or kDisrupted otherwise.
  bool departed = false;

  // Returns true if the slot has a pod that is pending or active, and that should be kept.
  bool alive() const { return state == ReplicaState::kPending || state == ReplicaState::kActive; }
};

// Contains a replica type of the spec. replicas[i] is the slot with index i.
struct ReplicaGroup {
  api::ReplicaType type = api::ReplicaType::kWorker;
  api::RestartPolicy policy = api::RestartPolicy::kNever;
  std::vector<Replica> replicas;

  int32_t size() const { return static_cast<int32_t>(replicas.size()); }
  int32_t Count(ReplicaState state) const;
  // Returns the number of completed and succeeded replicas.
  int32_t Succeeded() const;
};

struct Replicas {
  std::vector<ReplicaGroup> groups;  // in the order of api::kReplicaTypes
  // The pods without a slot: the index is beyond the slots, the type is not in the spec, or the
  // name is not that of a slot.
  std::vector<const objects::Pod*> surplus;
  bool any_outdated = false;  // whether any pod, even a surplus one, belongs to an earlier attempt

  // Returns the type's group; nullptr if the type is not in the spec or has 0 replicas.
  const ReplicaGroup* Find(api::ReplicaType type) const;
  // Returns true if `slot` is set and the job has this slot.
  bool Has(const std::optional<Slot>& slot) const;
  // Returns the number of slots of all types.
  int64_t Size() const;
};

// Arranges the pods of the snapshot. `status`, which is often newer than job.status, determines
// which indexes are completed, which pods are being replaced, and which attempt is current.
//
// `departed` selects the pods of Snapshot::departed that are assigned to empty slots: none, only
// those whose replica has completed or is already being replaced, or also those that failed or were
// disrupted.
enum class DepartedPods { kNone, kCompleted, kAll };
Replicas Arrange(const api::TFJob& job, const api::TFJobStatus& status, const Snapshot& snapshot,
                 DepartedPods departed = DepartedPods::kAll);

}  // namespace tfjob::policy
