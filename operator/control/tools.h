// Groups what the steps of a reconcile work with.
#pragma once

#include "operator/client/client.h"
#include "operator/control/cache.h"
#include "operator/control/observer.h"
#include "runtime/base/clock.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {

// All of it is thread-safe and must outlive whoever holds this.
struct Tools {
  client::Client& client;
  Cache& cache;
  Clock& clock;
  ThreadPool& pool;  // runs the calls of one plan, several at a time
  Observer& observer;

  // Never returns Internal: an error from a server that cannot even read says nothing about the
  // object.
  StatusOr<client::Object> ReadObject(const client::Key& key) const {
    StatusOr<client::Object> found = client.Get(key);
    if (absl::IsInternal(found.status())) return Unavailable(Message(found.status()));
    return found;
  }
};

}  // namespace tfjob::control
