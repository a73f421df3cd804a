// Sends events to the API server without holding anybody up: similar ones are combined, floods are
// cut off, the rest is sent by threads of its own and tried again while the server is away.
//
// The rules are those of client-go's core/v1 recorder:
//  - The same event again (object, type, reason, message) is no new event: the first one's count and
//    time are patched.
//  - From the 10th different message of one object, type and reason on, with no more than 10 minutes
//    between two of them, they are one event "(combined from similar events): <message>", whose
//    count and message are patched. Of a job whose workers crash one after the other one sees nine
//    events and one that counts the others.
//  - Each object and reason may cause 25 calls at once and one more every 5 minutes; beyond that
//    events are only counted, and the next that may go carries the count. (client-go has one such
//    bucket for all reasons of an object. With it the pods of a large job would use up what its end
//    needs.)
//  - What is known about 4,096 objects and events is kept, those unused for longest are forgotten.
// Unlike there, an event has a name that tells its cause: a name that is taken is an event which was
// sent before, perhaps by the operator's last life, and the same name twice in a row is one event.
//
// Use: one recorder a process, over a client that passes writes on only while this process leads and
// that shares no flow control with other writes, stopped after the workers and before the lease is
// given up. A reconcile hands its events over after the
// status was acknowledged and forgets them; with a recorder there is nothing to send again at the
// next look.
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
  // Events that wait to be sent; beyond it new ones are dropped. 1,000 jobs that arrive at once have a few each that
  // tell what became of them (a restart, the end), and their pods' routine ones beside.
  size_t queue = 5000;
  // Of these, so many are kept for events that are not routine.
  size_t reserve = 4000;
  // One of hundreds of its kind, such as pods created: sent after all others, dropped first. None: all are equal.
  std::function<bool(const objects::Event&)> routine;
  int threads = 2;  // 0: nothing is sent by itself, Step() does
  int tries = 12;
  Duration retry_period{10s};       // the first one · [0, 1), so that not all come back at once
  std::function<double()> uniform;  // in [0, 1); none: random
};

// Thread-safe.
class Recorder {
 public:
  // `client` must outlive it.
  Recorder(client::Client& client, Options options);
  // Stop(0).
  ~Recorder();

  // Never blocks and never fails; of events that are dropped and not routine the log tells, at most
  // once a minute. `name` is the Event object's; "": made from object and time.
  void Record(std::string name, objects::Event event);

  // Sends what waits, at most for so long, drops the rest and joins the threads. What is recorded
  // afterwards is dropped. Idempotent.
  void Stop(Duration patience);

  // With threads 0: sends one event that is due; false when none is.
  bool Step();

  Counters counters();

 private:
  // One event on its way.
  struct Outgoing {
    Observation observation;
    int tries = 0;
    bool routine = false;
    bool is_new = false;  // the server does not have it, as far as is known
  };

  void Work();
  // One that is due, out of the queue; nothing when none is.
  std::optional<Outgoing> Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(Outgoing outgoing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t& Dropped(bool routine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // There is no room for it.
  void Overflow(const Outgoing& outgoing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One of waiting_ is due.
  void MakeReady(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Until the next is due; nothing when none waits for a time.
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
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);            // of waiting_, not routine
  std::deque<std::string> routine_ ABSL_GUARDED_BY(mutex_);  // of waiting_, when ready_ is empty
  std::multimap<Duration, std::string> later_ ABSL_GUARDED_BY(mutex_);  // Monotonic() → which
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  int64_t cut_off_ ABSL_GUARDED_BY(mutex_) = 0;  // of those dropped: by Stop() and the client's end
  int64_t overflowed_ ABSL_GUARDED_BY(mutex_) = 0;              // for want of room, not logged yet
  std::optional<Duration> complained_ ABSL_GUARDED_BY(mutex_);  // of want of room
  int sending_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is taken in any more
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;   // nothing is sent any more
  std::vector<std::thread> threads_;
};

}  // namespace tfjob::events
