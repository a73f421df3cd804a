// Groups the objects that the steps of a reconcile use.
#pragma once

#include <functional>
#include <string>

#include "operator/client/client.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob {
class Clock;
class ThreadPool;
}  // namespace tfjob

namespace tfjob::control {

class Cache;
class NativeApi;
class Observer;

// Ensures that the pod groups of `scheduler` are watched. Returns false until their first list has
// arrived or the time to wait for the list has run out.
using WatchPodGroups = std::function<bool(policy::GangScheduler scheduler)>;

// Returns whether the first lists of network policies have arrived or the time to wait for them has
// run out.
using SeesNetworkPolicies = std::function<bool()>;

// Records that a call for the job with this key is complete.
using RecordProgress = std::function<void(const std::string& key)>;

// All members are thread-safe and must outlive every copy of this struct.
struct Dependencies {
  client::Client& client;
  Cache& cache;
  Clock& clock;
  ThreadPool& pool;  // runs the calls of one plan, several at a time
  Observer& observer;
  NativeApi& native_api;
  WatchPodGroups watch_pod_groups;
  RecordProgress record_progress = [](const std::string&) {};
  SeesNetworkPolicies sees_network_policies = [] { return true; };

  // Reads an object. Turns Internal into Unavailable, because a failed read is not a refusal
  // (IsRefusal).
  StatusOr<client::Object> ReadObject(const client::Key& key) const {
    StatusOr<client::Object> found = client.Get(key);
    if (absl::IsInternal(found.status())) return Unavailable(Message(found.status()));
    return found;
  }
};

}  // namespace tfjob::control
