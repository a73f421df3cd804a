// Elects a leader over a coordination.k8s.io/v1 Lease, with the rules and times of client-go: only
// one of several operators writes at a time.
//
// The lease says who holds it and for how long. A candidate never compares the times in it with its
// own clock. It notes, on its steady clock, when it saw the record change, and considers the holder
// gone once the record has not changed for the duration that it states. A holder renews every
// retry_period. It stops by itself if no renewal has succeeded for renew_deadline, which is before
// any other candidate may take over. Every write of the lease carries the resourceVersion that the
// decision was based on.
//
// This is not fencing: a write in flight when leadership ends may still arrive. Hence deterministic
// names, UID preconditions and LeaderGate (leader_gate.h), which checks the time before each write.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "operator/client/client.h"
#include "operator/kube/leader/leadership.h"
#include "operator/kube/leader/lease_record.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/stop.h"

namespace tfjob::kube {

struct LeaseOptions {
  std::string name_space;
  std::string name;      // --leader-election-id
  std::string identity;  // of this process, unique among all: NewIdentity()
  Duration lease_duration{15s};
  Duration renew_deadline{10s};
  Duration retry_period{2s};
  // A process that does not lead tries every retry_period · [1, 1 + jitter).
  double jitter = 1.2;
  // Release the lease in Stop(), so that another process may take it at once.
  bool release_on_stop = true;
  Clock* clock = &RealClock();
  std::function<double()> uniform;  // in [0, 1); empty: random
};

// InvalidArgument for times that cannot work. Create checks them too.
Status CheckLeaseTimes(const LeaseOptions& options);

// "<host name>_<random UUID>".
std::string NewIdentity();

// Called on the election's threads; they must return quickly. Members may be empty.
struct LeaseCallbacks {
  std::function<void()> on_started_leading;
  // Leadership was lost, and why. LeaderGate now blocks all writes. Called at most once, possibly
  // while another callback runs, and not for Stop(). The process is expected to stop all work and
  // to exit with an error.
  std::function<void(const Status& why)> on_lost;
  // The leader has changed (perhaps to this process); "" if the lease was released.
  std::function<void(const std::string& identity)> on_new_leader;
  // This process leads, but the lease changed since its last write: it is read before it
  // is renewed.
  std::function<void()> on_slow_renewal;
};

// Thread-safe. Leads at most once: after a loss it remains a standby.
class LeaderElection {
 public:
  // `client` must outlive it. Pass a client of its own, with a deadline of at most renew_deadline /
  // 2 and no flow control shared with others. InvalidArgument unless lease_duration >
  // renew_deadline > retry_period · jitter, and if a name is missing. Starts nothing yet.
  static StatusOr<std::unique_ptr<LeaderElection>> Create(client::Client& client,
                                                          LeaseOptions options,
                                                          LeaseCallbacks callbacks);
  // Calls Stop().
  ~LeaderElection();

  // Starts two threads: `lease` calls the server; `lease-watch` notices the deadline while a
  // call hangs.
  void Start();
  // Ends the election and, if leading, releases the lease. Call it once all workers have stopped
  // and nothing writes any more. Takes as long as a call in progress. Idempotent.
  void Stop();

  // Without Start(), for tests: one attempt (acquire or renew) and its consequences. Returns the
  // delay until the next attempt; nullopt once leadership was lost.
  std::optional<Duration> Step();
  // Without Start(): what `lease-watch` does; notices that a renewal is overdue.
  void CheckDeadline();

  bool leading() const { return leadership_.held(); }
  // For a LeaderGate. Lives as long as this object.
  const Leadership& leadership() const { return leadership_; }
  // The last leader seen; "" if none.
  std::string leader();
  // For /healthz: an error if this process led and its last renewal is older than lease_duration +
  // 20 s, so that a stuck process is killed. Also after a loss.
  Status Check();

 private:
  LeaderElection(client::Client& client, LeaseOptions options, LeaseCallbacks callbacks);

  enum class Try { kHeld, kNotHeld, kTaken };

  StatusOr<Try> AcquireOrRenew();
  StatusOr<Try> Create();
  StatusOr<Try> Write(const LeaseRecord& from);
  // Reads the lease and notes what changed. NotFound if it does not exist.
  Status Observe();
  Status Note(const client::Object& stored);
  void Renewed(Duration started);
  void Lose(const Status& why);
  void Release();
  bool led();
  void Run();
  void Watch();

  client::Client& client_;
  const LeaseOptions options_;
  const LeaseCallbacks callbacks_;
  Leadership leadership_;

  // Only for the thread that steps.
  std::optional<LeaseRecord> observed_;  // nullopt: no lease, or not read yet
  Duration observed_at_{0};              // when its spec last changed

  StopSource wake_;  // waits on the steady clock, unlike a CondVar: the wall clock may jump
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool led_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  Duration renewed_at_ ABSL_GUARDED_BY(mutex_){0};
  Status last_error_ ABSL_GUARDED_BY(mutex_);
  std::string leader_ ABSL_GUARDED_BY(mutex_);
  std::thread stepper_;
  std::thread watch_;
};

}  // namespace tfjob::kube
