// Decides the pace of the control loop: how many calls a reconcile makes, which errors prevent
// further calls, which status writes may wait, and when a job is reconciled again. Pure: no clock,
// no I/O.
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
namespace tfjob::render {
struct DesiredObject;
}

namespace tfjob::control {

// The largest numbers of creates and of deletes in one reconcile. Without these limits, a large
// job's status would stay out of date until all calls had been made.
inline constexpr size_t kMaxCreates = 256;
inline constexpr size_t kMaxDeletes = 256;
// The largest number of unsent events that are kept for another attempt.
inline constexpr size_t kMaxEventsKept = 1000;
// The maximum number of attempts of one reconcile if another writer keeps changing the job.
inline constexpr int kConflictTries = 4;
// If the watch has not confirmed a create after this time, the object is read.
inline constexpr Duration kWatchPatience = 10s;
// Deadlines are wall-clock times, but timers use the steady clock. If the wall clock is set forward
// past a deadline, the operator notices within this time.
inline constexpr Duration kWallClockPatience = 10min;
// Returns whether `count` objects of a job are read with one list rather than one by one.
bool ReadsByList(size_t count);
// How often a job is reconciled while it is waiting for the first list of pod groups or network
// policies. Each of these reconciles checks whether the job's time to wait has run out. When the
// list arrives, the job is reconciled immediately.
inline constexpr Duration kListPoll = 1s;

// Returns the objects among `creates` that one reconcile creates: at most kMaxCreates, grouped by
// kind in the order of the plan. Services are created only for the first slots with missing
// objects, and no pod is created before its service. Therefore, a job whose pods cannot be created
// does not leave thousands of services behind.
std::vector<render::DesiredObject> CreatesOfOneReconcile(
    const std::vector<render::DesiredObject>& creates);

// Returns how many objects the batch with index `batch` creates in parallel: 8, 16, 32, …
size_t BatchSize(int batch);

// Returns true if the error concerns only one object, because the server considers that object
// invalid. Any other error would affect all objects.
bool ConcernsOneObject(const Status& error);

struct TriedCreate {
  api::ReplicaType type;
  Status status;
};
// Returns the replica types for which every object in the batch was refused as invalid. Other
// objects of these types have the same template, so there is no point in trying to create them.
std::set<api::ReplicaType> RefusedTypes(const std::vector<TriedCreate>& batch);

// Returns true if the statuses differ only in their counts of active, succeeded, failed or ready
// replicas.
bool OnlyCountsDiffer(const api::TFJobStatus& before, api::TFJobStatus after);
// Returns true if the plan only writes a status in which only counts differ.
bool OnlyWritesCounts(const plan::Plan& plan, const api::TFJobStatus& before,
                      const api::TFJobStatus& after);

struct CountsDelay {
  std::optional<Duration> behind_since;  // when the status fell behind; nullopt: write it now
  std::optional<Duration> left;          // how long the write can wait; nullopt: not at all
};
// Delays a write of counts until the status has been out of date for `patience`. `behind_since` is
// the value that the last call returned. `behind_since` and `now` are times of the same clock.
CountsDelay DelayCounts(std::optional<Duration> behind_since, Duration now, Duration patience);

// Returns the earlier of two times; nullopt means never.
std::optional<Duration> Earlier(std::optional<Duration> a, std::optional<Duration> b);

// The reasons to reconcile a job again.
struct RequeueReasons {
  std::optional<Duration> check_nodes_after;
  std::optional<Duration> plan;  // Plan::requeue_after; at most kWallClockPatience
  bool has_more_work = false;    // the reconcile left some of the work to the next reconcile
  bool needs_retry = false;      // after an error, the backoff determines when work continues
  bool has_events = false;       // events could not be sent
  bool waits_for_watch = false;  // own creates are not confirmed yet
};
// Returns the delay until the next reconcile; nullopt if no reconcile is needed until something
// changes.
std::optional<Duration> RequeueAfter(const RequeueReasons& reasons);
// Returns the delay after which to reconcile a job in addition to the backoff after an error. This
// is `again_after`, or nullopt if `again_after` is so short that it would defeat the backoff.
std::optional<Duration> BesideBackoff(std::optional<Duration> again_after);

}  // namespace tfjob::control
