// Groups what the steps of a reconcile work with.
#pragma once

#include <functional>

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

// Ensures that the pod groups of that scheduler are watched. False while their first list
// may still arrive.
using WatchPodGroups = std::function<bool(policy::GangScheduler scheduler)>;

// All of it is thread-safe and must outlive every holder of this.
struct Tools {
  client::Client& client;
  Cache& cache;
  Clock& clock;
  ThreadPool& pool;  // runs the calls of one plan, several at a time
  Observer& observer;
  NativeApi& native_api;
  WatchPodGroups watch_pod_groups;

  // Never returns Internal: an error from a server that cannot even read says nothing about the
  // object.
  StatusOr<client::Object> ReadObject(const client::Key& key) const {
    StatusOr<client::Object> found = client.Get(key);
    if (absl::IsInternal(found.status())) return Unavailable(Message(found.status()));
    return found;
  }
};

}  // namespace tfjob::control
