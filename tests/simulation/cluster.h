// Provides the environment of a simulation: a store whose calls can fail, a fake clock, and the
// control loop, which is stepped manually. A second control loop may run on the same store for some
// time.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/client/faults.h"
#include "operator/control/manager.h"
#include "operator/local/store/store.h"
#include "runtime/base/clock.h"
#include "runtime/base/fake_clock.h"
#include "tests/simulation/protection.h"

namespace tfjob::simulation {

inline constexpr char kNamespace[] = "ns";
inline constexpr char kJob[] = "job";

// A clock that follows another clock, but has a wall clock that can be set. Thread-safe if the
// other clock is.
class SteppedClock : public Clock {
 public:
  // `clock` must outlive this object.
  explicit SteppedClock(Clock& clock) : clock_(clock) {}
  Time Now() override { return clock_.Now() + offset_.load(); }
  Duration Monotonic() override { return clock_.Monotonic(); }
  void Step(Duration by) { offset_ = offset_.load() + by; }

 private:
  Clock& clock_;
  std::atomic<Duration> offset_{Duration(0)};
};

class Cluster {
 public:
  struct Settings {
    uint64_t seed = 0;           // determines the order of deliveries, and when keys are added
    Duration count_patience{0};  // a setting of the control loop
    bool has_keys = false;       // whether the operators have keys
    bool has_policies = false;   // whether every job gets a NetworkPolicy
  };
  explicit Cluster(const Settings& settings);

  store::Store& store() { return store_; }
  client::FaultyClient& operator_client() { return faulty_; }
  FakeClock& clock() { return clock_; }
  SteppedClock& operator_clock() { return operator_clock_; }

  // Replaces the operator with a new one that has no in-memory state. Also removes all faults, so
  // the new operator's calls succeed.
  void StartOperator();
  // Makes every call by the operator fail until StartOperator() is called again.
  void KillOperator();
  bool alive() const { return alive_; }
  // Returns the number of operators that have been started so far.
  int starts() const { return starts_; }
  // Returns whether the operator is running and no watch is cut. If so, an idle operator has seen
  // everything.
  bool sees_everything() const { return alive_ && !stale_since_; }
  // Starts another operator on the same store. Its calls never fail. This simulates the time in
  // which a leader has not yet noticed that it has lost the lease.
  void StartSecondOperator();
  void StopSecondOperator() { second_.reset(); }
  bool has_second_operator() const { return second_ != nullptr; }
  bool had_second_operator() const { return had_second_operator_; }
  bool makes_policies() const { return settings_.has_policies; }
  // Returns whether there are two operators, and a watch of one of them is currently cut. One
  // operator may then see changes that the other does not see.
  bool OperatorsMayDiffer() { return second_ != nullptr && store_.HasCutWatch(); }

  // Cuts all watches if `all` is true, and otherwise a single watch. (Each operator watches each
  // kind of object over a separate stream.) Once there has been a second operator, an operator
  // gives up if a watch is cut for too long, as in a real cluster: the second operator stops, and
  // the first one restarts without in-memory state.
  void CutWatches(bool all);
  void MendWatches();

  // DeliverOne delivers one event of a random watch. StepOne lets the loop reconcile one job. Both
  // return false if there is nothing to do.
  bool DeliverOne() { return store_.DeliverFromOne(random_()); }
  bool StepOne();
  // Delivers events and reconciles jobs until nothing is left to do. Returns false if the loop
  // never becomes idle.
  bool RunUntilIdle();
  // Advances the clock, and runs everything that becomes due in the meantime. Returns false if the
  // loop never becomes idle.
  bool Advance(Duration by);

  // Returns the server's copy of the job, or nullopt if there is none. If the spec of the job
  // cannot be decoded, the result has an empty spec.
  std::optional<api::TFJob> Job();
  std::vector<std::shared_ptr<const objects::Pod>> Pods();
  std::vector<std::shared_ptr<const objects::Service>> Services();
  // Returns the pod groups of scheduler-plugins.
  std::vector<std::shared_ptr<const objects::CustomResource>> PodGroups();
  // Returns the number of write calls of the first operator, including failed ones. If `events` is
  // false, writes of events are not counted.
  int Writes(bool events);

  static client::Key KeyOf(objects::Kind kind, const std::string& name) {
    return {kind, kNamespace, name};
  }

 private:
  std::unique_ptr<control::Manager> NewOperator(client::Client& client);
  // Returns the time until the next timer of any operator.
  std::optional<Duration> NextTimer();

  size_t DeliverSome();
  void LeaveIfStale();

  const Settings settings_;
  std::mt19937_64 random_;
  FakeClock clock_;
  SteppedClock operator_clock_{clock_};
  KeySecret keys_;
  store::Store store_;
  client::FaultyClient faulty_;
  bool alive_ = true;
  int starts_ = 0;
  std::unique_ptr<control::Manager> manager_;
  std::unique_ptr<control::Manager> second_;
  bool turn_of_second_ = false;
  bool had_second_operator_ = false;
  std::optional<api::TFJob> job_;        // the result of the last Job()
  std::optional<Duration> stale_since_;  // the time since which a watch has been cut
};

}  // namespace tfjob::simulation
