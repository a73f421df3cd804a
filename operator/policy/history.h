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

#include "operator/policy/options.h"
#include "operator/policy/slot.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct Snapshot;

// One index of a replica type.
struct IndexHistory {
  std::string uid;     // of the last pod seen alive; "" for none yet
  bool alive = false;  // that pod lived at the last look
  Time lost_at;        // when the index was first seen without a living pod; unset while one lives
  int32_t recreations =
      0;  // in the present series; 0 again after options.restart_delay_reset of running
};

// A wanted name held by an object that is not the job's.
struct BlockedName {
  std::string holder_uid;
  Time tried_at;  // when a create last met the holder
};

struct History {
  std::map<api::ReplicaType, std::vector<IndexHistory>> indexes;
  // By name. The loop adds an entry when a create meets AlreadyExists with a foreign controller or
  // none, refreshes tried_at at every further meeting, and erases it when a create succeeds.
  std::map<std::string, BlockedName> blocked_pods;
  std::map<std::string, BlockedName> blocked_services;
  // Causes of standing events (Event::standing) that were sent; the loop inserts them after
  // sending.
  std::set<std::string> reported;
};

// Takes what the snapshot shows of the job's pods into the history. Call before Decide, once a
// look. Forgets the indexes of a job that is suspended or has ended.
void Remember(const api::TFJob& job, const Snapshot& snapshot, Time now, const Options& options,
              History& history);

}  // namespace tfjob::policy
