// Arranges a job's pods by slot, each with the single state on which all other decisions are based.
#pragma once

#include <vector>

#include "operator/api/indexes.h"
#include "operator/api/tfjob.h"
#include "operator/api/validate.h"
#include "operator/objects/pod.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::policy {

struct Snapshot;

// Arrange considers at most this many slots per type, since each costs memory; api::Validate
// refuses jobs with more.
inline constexpr auto kMaxSlots = static_cast<int32_t>(api::kMaxReplicas);

enum class ReplicaState {
  kMissing,      // no pod
  kPending,      // a pod that is not running yet
  kActive,       // phase Running, not terminating
  kCompleted,    // done forever: by the status, or exited with 0; with or without a pod
  kSucceeded,    // phase Succeeded without being done (policy Always)
  kFailed,       // phase Failed, permanently
  kRetryable,    // phase Failed, to be restarted and counted
  kDisrupted,    // taken away by others: Failed or terminating; to be restarted, not counted
  kReplacing,    // one of the two above whose restart is already in the status
  kTerminating,  // being deleted, nothing to do but wait
  kOutdated,     // of an earlier attempt
};

struct Replica {
  const objects::Pod* pod = nullptr;  // from the snapshot; for kCompleted possibly a departed one
  ReplicaState state = ReplicaState::kMissing;

  // True if the slot has a pod that is meant to stay.
  bool alive() const { return state == ReplicaState::kPending || state == ReplicaState::kActive; }
};

// One type of the spec; replicas[i] is the slot of index i.
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
  // Pods without a slot: an index beyond replicas, a type removed from the spec, or a second pod
  // under another name.
  std::vector<const objects::Pod*> surplus;
  bool any_outdated = false;  // pods of an earlier attempt exist, including surplus ones

  // Returns the type's group, or nullptr if the type is absent: not in the spec, or
  // with 0 replicas.
  const ReplicaGroup* Find(api::ReplicaType type) const;
  // True if the job has that slot.
  bool Has(const std::optional<Slot>& slot) const;
  // Returns the number of slots of all types.
  int64_t Size() const;
};

// `status` determines what is done, what is being replaced, and which attempt runs; it is often
// newer than the job's. Without `departed`, pods that are gone do not count for any slot.
Replicas Arrange(const api::TFJob& job, const api::TFJobStatus& status, const Snapshot& snapshot,
                 bool departed = true);

}  // namespace tfjob::policy
