// Decides the pace of the loop: how many calls one reconcile makes, which errors stop the others,
// which status writes may wait, when a job is reconciled again. Pure: no clock, no I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::plan {
struct Plan;
}

namespace tfjob::control {

// Creates and deletes in one reconcile: limited so that the status of a large job does not wait for
// all of them.
inline constexpr size_t kMaxCreates = 256;
inline constexpr size_t kMaxDeletes = 256;
// Events that are kept to be sent again.
inline constexpr size_t kMaxEventsKept = 1000;
// How often a reconcile is repeated at once if another writer has changed the job meanwhile.
inline constexpr int kConflictTries = 4;
// A create that no watch event has confirmed for this long is read.
inline constexpr Duration kWatchPatience = 10s;
// How often a job checks whether the first list of pod groups has arrived.
inline constexpr Duration kPodGroupPoll = 50ms;

// Returns how many objects the batch with that number, from 0, creates at once: 8, 16, 32, …
size_t BatchSize(int batch);

// Returns true for an error that concerns one object: the server calls it invalid. Any other error
// would meet all objects.
bool ConcernsOneObject(const Status& error);

struct TriedCreate {
  api::ReplicaType type;
  Status status;
};
// Returns the replica types of which every object in the batch was refused as invalid: the others
// of the type have the same template and need not be tried.
std::set<api::ReplicaType> RefusedTypes(const std::vector<TriedCreate>& batch);

// Returns true if nothing but the numbers of active, succeeded, failed or ready replicas differs.
bool OnlyCountsDiffer(const api::TFJobStatus& before, api::TFJobStatus after);
// Returns true if all that the plan does is to write a status in which only counts differ.
bool OnlyWritesCounts(const plan::Plan& plan, const api::TFJobStatus& before,
                      const api::TFJobStatus& after);

struct CountsDelay {
  std::optional<Duration> behind_since;  // unset if the status is written now
  std::optional<Duration> left;          // how long the write can wait; nullopt: not at all
};
// Delays a write of counts until the status has been out of date for `patience`. `behind_since`: as
// returned by the last call; `now`: of the same clock.
CountsDelay DelayCounts(std::optional<Duration> behind_since, Duration now, Duration patience);

// Returns the earlier of two times; nullopt means never.
std::optional<Duration> Earlier(std::optional<Duration> a, std::optional<Duration> b);

// What makes a job be reconciled again.
struct RequeueReasons {
  std::optional<Duration> check_nodes_after;
  std::optional<Duration> plan;  // Plan::requeue_after
  bool has_more_work = false;    // the reconcile left some of the work to the next one
  bool needs_retry = false;      // so the backoff decides when the work goes on
  bool has_events = false;       // events could not be sent
  bool waits_for_watch = false;  // own creates are not confirmed
};
// Returns when to reconcile; nullopt: only when something happens.
std::optional<Duration> RequeueAfter(const RequeueReasons& reasons);
// Returns the part of `again_after` that holds beside the backoff after an error; nullopt if it is
// due so soon that it would undo the backoff.
std::optional<Duration> BesideBackoff(std::optional<Duration> again_after);

}  // namespace tfjob::control
