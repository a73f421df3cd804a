// Contains what the control loop remembers about a job between two reconciles. If the operator
// restarts, this memory is lost, which does no harm. Because of this memory, Decide can delay the
// recreation of a replica that fails repeatedly, and space out retries of names that belong to
// other owners' objects. It can also report a lasting problem, such as an image that cannot be
// pulled, only once instead of at every reconcile.
//
// The loop owns one History per job, discards it together with the job, and passes it to each
// reconcile through Snapshot::history:
//
//   snapshot.history = &history;
//   Remember(job, snapshot, options, history);
//   Verdict verdict = Decide(job, snapshot, now, options);
//
// Unless stated otherwise, all times are times of the steady clock, like Snapshot::steady_now.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/policy/facts/decision_options.h"
#include "operator/policy/facts/slot.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct Snapshot;

// Contains the history of one slot, that is, of one index of a replica type.
struct IndexHistory {
  std::string uid;        // UID of the last pod seen in the slot; "" if none yet
  int32_t attempt = 0;    // that pod's attempt
  bool alive = false;     // whether that pod was alive at the last reconcile
  bool vanished = false;  // the pod was alive at one reconcile and gone at the next
  // When the slot was first seen without a live pod; nullopt while it has a live pod.
  std::optional<Duration> lost_at;
  int32_t recreations = 0;  // reset once a pod has run for restart_delay_reset
  // The last run of the `tensorflow` container; nullopt if the container was not seen running.
  struct Run {
    Time started_at;  // by the node's clock; identifies the run
    Duration seen_at{0};
    bool operator==(const Run&) const = default;
  };
  std::optional<Run> run;

  bool operator==(const IndexHistory&) const = default;
};

// Records that the name of a wanted pod or service belongs to an object of another owner.
struct BlockedName {
  std::string holder;      // the object's controller ("ReplicaSet web-5d9"), or "nobody"
  std::string holder_uid;  // UID of the object itself
  Duration tried_at{0};    // when a create last failed because of the object
};

struct History {
  std::optional<Duration> first_seen;  // when this operator first saw the job
  std::map<api::ReplicaType, std::vector<IndexHistory>> indexes;
  // The pods in status.replicaStatuses[T].replacing that are gone. Maps each UID to the time when
  // the pod was first found to be gone.
  std::map<std::string, Duration, std::less<>> counted_and_gone;
  // The blocked pods and services, by name. If a create fails with AlreadyExists and the existing
  // object has another controller or none, the loop adds (or updates) an entry and reconciles the
  // job again. The loop erases the entry once a create succeeds or the object with the name is
  // gone.
  std::map<std::string, BlockedName> blocked_pods;
  std::map<std::string, BlockedName> blocked_services;
  // The causes of the standing events (JobEvent::standing) that have been sent. The loop inserts
  // causes; Remember removes causes that cannot occur again (reported_causes.h).
  std::set<std::string> reported;
  // The API server's message if it refused an object of the job when the loop last tried to create
  // the object; "" otherwise. Maintained by the loop.
  std::string refusal;
  // How many times the loop has changed the job's NetworkPolicy, and the times of the first change
  // (by the wall clock) and of the last change. The loop calls RecordPolicyChange; Remember sets
  // the number to 0 once the last change was restart_delay_reset ago.
  int32_t policy_changes = 0;
  Time policy_changes_since;
  Duration policy_changed_at{0};

  // Returns the history of the slot; nullptr if no pod has been seen in the slot yet.
  const IndexHistory* Find(const Slot& slot) const;
  // Returns true if the name of the slot's pod belongs to an object of another owner.
  bool BlocksPod(const api::TFJob& job, const Slot& slot) const;
  void RecordPolicyChange(Time now, Duration steady_now);
};

// Updates `history` from the pods in the snapshot. Call this once per reconcile, before Decide.
// Drops the history of every slot if the job is to be suspended, is still marked Suspended, or has
// ended; otherwise, drops the history of those slots that the spec no longer has. Also drops the
// causes of events about objects that no longer matter, and records when counted pods were first
// found to be gone.
void Remember(const api::TFJob& job, const Snapshot& snapshot, const DecisionOptions& options,
              History& history);

}  // namespace tfjob::policy
