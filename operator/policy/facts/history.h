// Holds what the control loop remembers about a job between two reconciles, in memory only: losing
// it when the operator restarts does no harm. It delays the recreation of a replica that fails
// repeatedly, keeps the names held by other owners, and prevents events about standing conditions
// (an image that cannot be pulled) from being sent at every reconcile.
//
// The loop owns one History per job, drops it with the job, and passes it to each reconcile
// through Snapshot::history:
//
//   snapshot.history = &history;
//   Remember(job, snapshot, now, options, history);
//   Verdict verdict = Decide(job, snapshot, now, options);
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/policy/facts/options.h"
#include "operator/policy/facts/slot.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct Snapshot;

// One index of a replica type.
struct IndexHistory {
  std::string uid;        // of the last pod seen in the slot; "" if none yet
  int32_t attempt = 0;    // of that pod
  bool alive = false;     // that pod was alive at the last reconcile
  bool vanished = false;  // it was alive, then suddenly gone: it was deleted
  Time lost_at;           // when the slot was first seen without a live pod; unset while it has one
  int32_t recreations = 0;  // in the current series, which restart_delay_reset of running ends

  bool operator==(const IndexHistory&) const = default;
};

// A wanted name held by an object that is not the job's.
struct BlockedName {
  std::string holder;      // its controller, for users: "ReplicaSet web-5d9", or "nobody"
  std::string holder_uid;  // of the object itself
  Time tried_at;           // when a create last ran into it
};

struct History {
  std::map<api::ReplicaType, std::vector<IndexHistory>> indexes;
  // By name. The loop adds an entry if a create meets AlreadyExists and the object has a foreign
  // controller or none, refreshes tried_at each time this happens again, erases the entry when a
  // create succeeds, and reconciles the job again each time.
  std::map<std::string, BlockedName> blocked_pods;
  std::map<std::string, BlockedName> blocked_services;
  // Causes of standing events (Event::standing) that were sent; the loop inserts
  // them after sending.
  std::set<std::string> reported;
  // The server's message when it last refused to create one of the job's objects; "" if it refuses
  // none. Maintained by the loop.
  std::string refusal;

  // Returns nullptr if the slot was never seen with a pod.
  const IndexHistory* Find(const Slot& slot) const;
  // True if another owner's object holds the name of the slot's pod.
  bool BlocksPod(const api::TFJob& job, const Slot& slot) const;
};

// Records what the snapshot shows of the job's pods in the history. Call once per reconcile, before
// Decide. Forgets all indexes of a job that is suspended or has ended, and those beyond `replicas`.
void Remember(const api::TFJob& job, const Snapshot& snapshot, Time now, const Options& options,
              History& history);

}  // namespace tfjob::policy
