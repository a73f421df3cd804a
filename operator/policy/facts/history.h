// Holds what the control loop remembers about a job between two reconciles. It is kept only in
// memory, and it does no harm if a restart of the operator loses it. The history delays the
// recreation of a replica that fails repeatedly, remembers which names other owners hold, and
// prevents an event about a standing condition (an image that cannot be pulled) from being sent at
// every reconcile.
//
// The loop owns one History per job, discards it together with the job, and passes it to each
// reconcile through Snapshot::history:
//
//   snapshot.history = &history;
//   Remember(job, snapshot, now, options, history);
//   Verdict verdict = Decide(job, snapshot, now, options);
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/policy/facts/decision_options.h"
#include "operator/policy/facts/slot.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct Snapshot;

// One index of a replica type.
struct IndexHistory {
  std::string uid;        // of the last pod seen in the slot; "" if none yet
  int32_t attempt = 0;    // of that pod
  bool alive = false;     // whether that pod was alive at the last reconcile
  bool vanished = false;  // the pod was deleted while alive: it existed, and then was gone
  Time lost_at;           // when the slot was first seen without a live pod; unset while it has one
  int32_t recreations = 0;  // reset once a pod has run for restart_delay_reset

  bool operator==(const IndexHistory&) const = default;
};

// The name of a wanted pod or service that is held by an object of another owner.
struct BlockedName {
  std::string holder;      // its controller, for users: "ReplicaSet web-5d9", or "nobody"
  std::string holder_uid;  // of the object itself
  Time tried_at;           // when a create last failed because of it
};

struct History {
  std::map<api::ReplicaType, std::vector<IndexHistory>> indexes;
  // Blocked names, by name. If a create fails with AlreadyExists and the existing object has
  // another controller or none, the loop adds an entry, or updates its tried_at. When a create
  // succeeds, the loop erases the entry. Each time, it reconciles the job again.
  std::map<std::string, BlockedName> blocked_pods;
  std::map<std::string, BlockedName> blocked_services;
  // Causes of the standing events (Event::standing) that have been sent. The loop inserts them.
  std::set<std::string> reported;
  // The server's message when it last refused to create an object of the job; "" if it refuses
  // none. Maintained by the loop.
  std::string refusal;

  // Returns the history of the slot; nullptr if the slot has never been seen with a pod.
  const IndexHistory* Find(const Slot& slot) const;
  // True if an object of another owner holds the name of the slot's pod.
  bool BlocksPod(const api::TFJob& job, const Slot& slot) const;
};

// Updates `history` from the pods in the snapshot. Call once per reconcile, before Decide. Drops
// all indexes if the job is to be suspended, is still marked Suspended, or has ended; otherwise,
// drops the indexes that the spec no longer has.
void Remember(const api::TFJob& job, const Snapshot& snapshot, Time now,
              const DecisionOptions& options, History& history);

}  // namespace tfjob::policy
