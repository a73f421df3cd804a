// Sends events to the API server without blocking the caller. Similar events are combined,
// floods are cut off, and the rest is sent by the recorder's own threads and retried while the
// server is unavailable.
//
// The rules are those of client-go's core/v1 recorder:
//  - The same event again (object, type, reason, message) is not a new event: the count and the
//    time of the first one are patched.
//  - From the 10th different message of one object, type and reason on, with no more than 10
//    minutes between two of them, they become one event "(combined from similar events):
//    <message>", whose count and message are patched. For a job whose workers crash one after
//    another, this gives nine events and one that counts the others.
//  - Each object and reason may cause 25 calls at once and one more every 5 minutes. Beyond that,
//    events are only counted, and the next one that may be sent carries the count. (client-go has
//    one such bucket for all reasons of an object. The pods of a large job would then use up what
//    the end of the job needs.)
//  - State is kept for 4,096 objects and events; the least recently used are forgotten.
// Unlike in client-go, the name of an event identifies its cause. If the name is taken, the
// event was sent before, perhaps by the previous instance of the operator. The same name twice
// in a row is one event.
//
// Usage: create one recorder per process, over a client that passes writes on only while
// this process leads and that shares no flow control with other writes. Stop it after the
// workers and before the lease is released. A reconcile hands over its events after the
// status was acknowledged and then forgets them: with a recorder, the next reconcile has
// nothing to send again.
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

struct Options {
  Clock* clock = &RealClock();
  CorrelatorOptions correlator;
  // Limit of events waiting to be sent; beyond it new ones are dropped. 1,000 jobs that arrive at
  // once have a few events each that report their outcome (a restart, the end), and in addition
  // the routine ones of their pods.
  size_t queue = 5000;
  // The part of `queue` that is reserved for events that are not routine.
  size_t reserve = 4000;
  // Returns whether an event is one of hundreds of its kind, such as pods created: sent after all
  // others and dropped first. If unset, all events are equal.
  std::function<bool(const objects::Event&)> routine;
  int threads = 2;  // 0: only Step() sends
  int tries = 12;
  Duration retry_period{10s};       // the first one · [0, 1), to spread the retries
  std::function<double()> uniform;  // in [0, 1); unset: random
};

// Thread-safe.
class Recorder {
 public:
  // `client` must outlive the recorder.
  Recorder(client::Client& client, Options options);
  // Calls Stop(0).
  ~Recorder();

  // Never blocks and never fails. Dropped events that are not routine are logged, at most once
  // per minute. `name` is that of the Event object; "" derives it from the object and the time.
  void Record(std::string name, objects::Event event);

  // Sends the waiting events for at most `patience`, drops the rest and joins the threads. Events
  // recorded afterwards are dropped. Idempotent.
  void Stop(Duration patience);

  // With threads 0: sends one event that is due; returns false if none is.
  bool Step();

  Counters counters();

 private:
  // One event to be sent.
  struct Outgoing {
    Observation observation;
    int tries = 0;
    bool routine = false;
    bool is_new = false;  // as far as is known, the server does not have it
  };

  void Work();
  // Takes an event that is due out of the queue; nullopt if none is.
  std::optional<Outgoing> Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(Outgoing outgoing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t& Dropped(bool routine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts and logs an event that is dropped because the queue is full.
  void Overflow(const Outgoing& outgoing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks an entry of waiting_ as due.
  void MakeReady(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the time until the next event is due; nullopt if none is scheduled.
  std::optional<Duration> Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Send(const Outgoing& outgoing);
  void Settle(Outgoing outgoing, const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Deliver();

  client::Client& client_;
  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  Correlator correlator_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Outgoing> waiting_ ABSL_GUARDED_BY(mutex_);  // by namespace/name
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);            // keys, not routine
  std::deque<std::string> routine_ ABSL_GUARDED_BY(mutex_);  // keys, used if ready_ is empty
  std::multimap<Duration, std::string> later_ ABSL_GUARDED_BY(mutex_);  // by Monotonic() time
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  int64_t cut_off_ ABSL_GUARDED_BY(mutex_) = 0;     // dropped by Stop() or the end of the client
  int64_t overflowed_ ABSL_GUARDED_BY(mutex_) = 0;  // queue full, not logged yet
  std::optional<Duration> complained_ ABSL_GUARDED_BY(mutex_);  // last log of a full queue
  int sending_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;  // no event is accepted any more
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;   // no event is sent any more
  std::vector<std::thread> threads_;
};

}  // namespace tfjob::events
