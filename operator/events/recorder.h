// Sends events to the API server without blocking the caller. Similar events are combined, and
// floods of events are limited. The recorder's own threads send the resulting events, and retry
// while the server is unavailable.
//
// The rules are those of client-go's core/v1 recorder, except as noted:
//  - If an event is repeated (same object, type, reason and message), no new event is created.
//    Instead, the count and time of the first event are patched.
//  - From the 10th different message on, events with the same object, type and reason are combined,
//    as long as no more than 10 minutes pass between consecutive events. The count and message of
//    the combined event, "(combined from similar events): <message>", are patched. If the workers
//    of a job crash one after another, this results in nine individual events and one combined
//    event, which counts the remaining crashes.
//  - Each combination of object and reason may cause a burst of 25 calls, plus one call every 5
//    minutes. Events beyond this limit are only counted; the next call reports the count.
//    (client-go has one such limit per object, for all reasons together. With that limit, events
//    about the pods of a large job would leave no room for events about its end.)
//  - The recorder remembers at most 4,096 events, 4,096 groups of similar events, and 4,096
//    combinations of object and reason. It evicts the least recently used ones.
// Unlike in client-go, the caller can give an event a name that identifies the event's cause. If
// the server already has an event with this name, the event has already been sent, perhaps by the
// previous instance of the operator. If the same event is recorded twice in a row under the same
// name, the second call is ignored.
//
// Usage: create one recorder per process. Its client should pass on writes only while this process
// leads, and should share no flow control with other writes. Stop the recorder after the workers,
// and before the lease is released. A reconcile records its events once the server has acknowledged
// the new status. After that, only the recorder is responsible for the events; later reconciles do
// not record them again.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/client/client.h"
#include "operator/events/correlator.h"
#include "operator/events/counters.h"
#include "operator/objects/event.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::events {

struct RecorderOptions {
  Clock* clock = &RealClock();
  CorrelatorOptions correlator;
  // The maximum number of events that are waiting to be sent. If the queue is full, new events are
  // dropped. The default is enough for 1,000 jobs that arrive at once: each has a few events that
  // report its progress (a restart, the end), in addition to routine events about its pods.
  size_t queue = 5000;
  // The part of `queue` that routine events must not use.
  size_t reserve = 4000;
  // Returns whether an event is routine, such as an event about created pods. A job may have
  // hundreds of routine events. Routine events are sent last and dropped first. If this is unset,
  // no event is routine.
  std::function<bool(const objects::Event&)> routine;
  int threads = 2;  // 0: only Step() sends
  int tries = 12;
  Duration retry_period{10s};  // the first period is multiplied by uniform(), to spread retries
  std::function<double()> uniform;  // in [0, 1); unset: random
};

// Queues events and sends them. Thread-safe.
class Recorder {
 public:
  // `client` must outlive the recorder.
  Recorder(client::Client& client, RecorderOptions options);
  // Calls Stop(0).
  ~Recorder();

  // Queues an event. Never blocks and never fails. If the queue is full, the event is dropped.
  // Dropped events are logged, at most once per minute, unless they are routine. `name` is the name
  // of the Event object; if empty, it is derived from the event and the time.
  void Record(std::string name, objects::Event event);

  // Keeps sending the waiting events, except those whose retry is pending, for at most `patience`.
  // Then drops the other events and joins the threads. Events recorded afterwards are dropped.
  // Idempotent.
  void Stop(Duration patience);

  // Sends one event that is due; returns false if no event is due. Used only if `threads` is 0.
  bool Step();

  Counters counters();

 private:
  // Describes an event to send.
  struct Outgoing {
    Observation observation;
    int tries = 0;
    bool routine = false;
    bool is_new = false;  // as far as is known, the server does not have the event yet
  };

  void Work();
  // Removes and returns an event that is due; nullopt if there is none.
  std::optional<Outgoing> Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(Outgoing outgoing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t& Dropped(bool routine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts and logs an event that is dropped because the queue is full.
  void Overflow(const Outgoing& outgoing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the entry of waiting_ with this key due now.
  void MakeReady(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the time until the next event is due; nullopt if none is scheduled.
  std::optional<Duration> Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Send(const Outgoing& outgoing);
  void Settle(Outgoing outgoing, const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Deliver();

  client::Client& client_;
  const RecorderOptions options_;
  Mutex mutex_;
  CondVar changed_;
  Correlator correlator_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Outgoing> waiting_ ABSL_GUARDED_BY(mutex_);  // by namespace/name
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);            // keys, not routine
  std::deque<std::string> routine_ ABSL_GUARDED_BY(mutex_);  // keys, used if ready_ is empty
  std::multimap<Duration, std::string> later_ ABSL_GUARDED_BY(mutex_);  // by Monotonic() time
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  int64_t cut_off_ ABSL_GUARDED_BY(mutex_) = 0;     // dropped because of Stop() or a stopped client
  int64_t overflowed_ ABSL_GUARDED_BY(mutex_) = 0;  // dropped for a full queue, not logged yet
  std::optional<Duration> complained_ ABSL_GUARDED_BY(mutex_);  // when a full queue was last logged
  int sending_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;  // no more events are accepted
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;   // no more events are sent
  std::vector<std::thread> threads_;
};

}  // namespace tfjob::events
