// A job's pods arranged by slot, each with the one word that every other decision goes by.
#pragma once

#include <vector>

#include "operator/api/indexes.h"
#include "operator/api/tfjob.h"
#include "operator/api/validate.h"
#include "operator/policy/facts/slot.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// Of each type Arrange looks at so many slots and no further, since each costs memory:
// api::Validate refuses jobs with more.
inline constexpr auto kMaxSlots = static_cast<int32_t>(api::kMaxReplicas);

enum class ReplicaState {
  kMissing,      // no pod
  kPending,      // a pod that does not run yet
  kActive,       // phase Running, not terminating
  kCompleted,    // done for ever: by the status, or ended with 0; with or without a pod
  kSucceeded,    // phase Succeeded without being done (policy Always)
  kFailed,       // phase Failed for good
  kRetryable,    // phase Failed, to be restarted and counted
  kDisrupted,    // taken away by others: Failed or terminating; to be restarted, not counted
  kReplacing,    // one of the two above whose restart is in the status already
  kTerminating,  // on its way out, nothing to do but wait
  kOutdated,     // of an attempt before the present one
};

struct Replica {
  const objects::Pod* pod = nullptr;  // the snapshot's; for kCompleted perhaps one that departed
  ReplicaState state = ReplicaState::kMissing;

  // A pod stands in the slot that counts on staying.
  bool alive() const { return state == ReplicaState::kPending || state == ReplicaState::kActive; }
};

// One type of the spec; replicas[i] is the slot of index i.
struct ReplicaGroup {
  api::ReplicaType type = api::ReplicaType::kWorker;
  api::RestartPolicy policy = api::RestartPolicy::kNever;
  std::vector<Replica> replicas;

  int32_t size() const { return static_cast<int32_t>(replicas.size()); }
  int32_t Count(ReplicaState state) const;
  // Completed and succeeded ones.
  int32_t Succeeded() const;
};

struct Replicas {
  std::vector<ReplicaGroup> groups;  // in the order of api::kReplicaTypes
  // Pods that stand in no slot: index beyond replicas, a type that left the spec, a second pod
  // under another name.
  std::vector<const objects::Pod*> surplus;
  bool any_outdated = false;  // pods of an earlier attempt exist, surplus ones included

  // The type's group, or nullptr when the type is absent: not in the spec, or with 0 replicas.
  const ReplicaGroup* Find(api::ReplicaType type) const;
  // Whether the job has that slot.
  bool Has(const std::optional<Slot>& slot) const;
  // Slots of all types.
  int64_t Size() const;
};

// `status` says what is done, being replaced, and which attempt runs; often a newer one than the
// job's. Without `departed`, pods that are gone speak for no slot.
Replicas Arrange(const api::TFJob& job, const api::TFJobStatus& status, const Snapshot& snapshot,
                 bool departed = true);

}  // namespace tfjob::policy
