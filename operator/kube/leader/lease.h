// Elects a leader with a coordination.k8s.io/v1 Lease, so that only one of several operators writes
// at a time. Uses the rules and default times of client-go.
//
// The lease records its holder and how long it is valid without being renewed. A candidate never
// compares the times in the lease with its own clock. Instead, it remembers, on its monotonic
// clock, when it saw the record change, and considers the holder gone once the record has not
// changed for the duration that the record states. A holder renews the lease every retry_period. If
// no renewal succeeds for renew_deadline, the holder stops acting as the leader. At that time, no
// other candidate may take over yet. Every write of the lease carries the resourceVersion that the
// decision was based on.
//
// This is not fencing: a write that is in progress when leadership ends may still reach the server.
// To limit the harm, names are deterministic, deletes have UID preconditions, and LeaderGate
// (leader_gate.h) checks the time before each write.
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
  std::string identity;  // this process's, unique among all candidates: NewIdentity()
  Duration lease_duration{15s};
  Duration renew_deadline{10s};
  Duration retry_period{2s};
  // A process that does not lead tries again after retry_period times a random factor in [1, 1 +
  // jitter), or as soon as the lease of another process expires. client-go does not react to the
  // expiry. Therefore, it may take up to 4.4 s longer to take over the lease of a leader that was
  // killed.
  double jitter = 1.2;
  // If true, Stop() releases the lease, so that another process can acquire it immediately.
  bool release_on_stop = true;
  Clock* clock = &RealClock();
  std::function<double()> uniform;  // in [0, 1); empty: random
};

// Returns InvalidArgument unless the times meet the conditions of LeaderElection::Create, which
// also checks them.
Status CheckLeaseTimes(const LeaseOptions& options);

// Returns "<host name>_<random UUID>".
std::string NewIdentity();

// Defines the functions that the election calls on its threads. They must return quickly. Any of
// them may be empty.
struct LeaseCallbacks {
  std::function<void()> on_started_leading;
  // Called with the reason after leadership has been lost. LeaderGate already blocks all writes by
  // then. Called at most once, possibly while another callback is running, but never because of
  // Stop(). The process is expected to stop all work and to exit with an error.
  std::function<void(const Status& why)> on_lost;
  // Called after the leader has changed (perhaps to this process); `identity` is "" if the lease
  // was released.
  std::function<void(const std::string& identity)> on_new_leader;
  // Called if this process leads but the lease has changed since this process last wrote it. The
  // lease must then be read before it can be renewed.
  std::function<void()> on_slow_renewal;
};

// Acquires and renews the lease. Leads at most once: after losing the lease, never tries again.
// Thread-safe.
class LeaderElection {
 public:
  // Creates an election that has not started yet. `client` must outlive the election, and should be
  // a separate client with a deadline of at most renew_deadline / 2 and no flow control that it
  // shares with other clients. Returns InvalidArgument unless lease_duration > renew_deadline >
  // retry_period · jitter, retry_period is positive, lease_duration is at least 1 s, and all names
  // are set.
  static StatusOr<std::unique_ptr<LeaderElection>> Create(client::Client& client,
                                                          LeaseOptions options,
                                                          LeaseCallbacks callbacks);
  // Calls Stop().
  ~LeaderElection();

  // Starts two threads: `lease` calls the server; `lease-watch` ends leadership if the renewal
  // deadline passes while a call hangs.
  void Start();
  // Ends the election and, if this process holds the lease and release_on_stop is set, releases the
  // lease. Call this after all workers have stopped and all writes have completed. Waits for a call
  // in progress. Idempotent.
  void Stop();

  // Makes one attempt to acquire or renew the lease, and handles the result. Returns the delay
  // until the next attempt; nullopt once leadership has been lost or the election has been stopped.
  // For tests that do not call Start().
  std::optional<Duration> Step();
  // Performs one check of the `lease-watch` thread, which ends leadership if the renewal deadline
  // has passed. For tests that do not call Start().
  void CheckDeadline();

  bool leading() const { return leadership_.held(); }
  // Returns the leadership for a LeaderGate. It is valid as long as this object exists.
  const Leadership& leadership() const { return leadership_; }
  // Returns the leader that was last seen; "" if none has been seen.
  std::string leader();
  // Returns an error if this process has led and its last renewal is older than lease_duration + 20
  // s, even if it has lost the lease in the meantime. Served by /healthz, so that the kubelet kills
  // a process that is stuck.
  Status Check();

 private:
  LeaderElection(client::Client& client, LeaseOptions options, LeaseCallbacks callbacks);

  enum class Try { kHeld, kNotHeld, kTaken };

  StatusOr<Try> AcquireOrRenew();
  StatusOr<Try> Create();
  StatusOr<Try> Write(const LeaseRecord& from);
  // Reads the lease and records what has changed. Returns NotFound if it does not exist.
  Status Observe();
  Status Note(const client::Object& stored);
  // Returns how long the lease of another process remains valid if it is not renewed; the maximum
  // duration if no other process holds a valid lease.
  Duration TimeToExpiry() const;
  Duration Validity(const LeaseRecord& record) const;
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

  // Used only by the thread that makes the attempts.
  std::optional<LeaseRecord> observed_;  // nullopt: no lease, or not read yet
  Duration observed_at_{0};              // when this process last saw the spec change

  StopSource wake_;  // unlike a CondVar, unaffected by jumps of the wall clock
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
