// What the control loop remembers of a job between two looks, in memory only: losing it at a
// restart of the operator does no harm. It delays the recreation of a replica that fails again and
// again, keeps the names that strangers hold, and keeps events about standing matters (an image
// that cannot be pulled) from being sent at every look.
//
// The loop owns one History a job, drops it with the job, and hands it to each look through
// Snapshot::history:
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
  std::string uid;        // of the last pod seen in the slot; "" for none yet
  int32_t attempt = 0;    // of that pod
  bool alive = false;     // that pod lived at the last look
  bool vanished = false;  // it lived, then it was gone at once: somebody deleted it
  Time lost_at;  // when the slot was first seen without a living pod; unset while one lives
  int32_t recreations = 0;  // in the present series, which restart_delay_reset of running ends

  bool operator==(const IndexHistory&) const = default;
};

// A wanted name held by an object that is not the job's.
struct BlockedName {
  std::string holder;      // its controller, for people: "ReplicaSet web-5d9", or "nobody"
  std::string holder_uid;  // of the object itself
  Time tried_at;           // when a create last met it
};

struct History {
  std::map<api::ReplicaType, std::vector<IndexHistory>> indexes;
  // By name. The loop adds an entry when a create meets AlreadyExists with a foreign controller or
  // none, refreshes tried_at at every further meeting, erases it when a create succeeds, and looks
  // at the job again each time.
  std::map<std::string, BlockedName> blocked_pods;
  std::map<std::string, BlockedName> blocked_services;
  // Causes of standing events (Event::standing) that were sent; the loop inserts them after
  // sending.
  std::set<std::string> reported;
  // What the server said when it last refused to create one of the job's objects; "" when it refuses none. Kept by the
  // loop.
  std::string refusal;

  // Nothing when the slot was never seen with a pod.
  const IndexHistory* Find(const Slot& slot) const;
  // Whether a stranger holds the name of the slot's pod.
  bool BlocksPod(const api::TFJob& job, const Slot& slot) const;
};

// Takes what the snapshot shows of the job's pods into the history. Call before Decide, once a
// look. Forgets all indexes of a job that is suspended or has ended, and those beyond `replicas`.
void Remember(const api::TFJob& job, const Snapshot& snapshot, Time now, const Options& options,
              History& history);

}  // namespace tfjob::policy
