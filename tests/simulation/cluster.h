// The world of one simulated life: the store with its faults, the control loop stepped by hand (for a while a second one),
// a fake clock.
#pragma once

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

namespace tfjob::simulation {

inline constexpr char kNamespace[] = "ns";
inline constexpr char kJob[] = "job";

class Cluster {
 public:
  // `count_patience`: of the control loop's settings.
  explicit Cluster(Duration count_patience);

  store::Store& store() { return store_; }
  client::FaultyClient& operator_client() { return faulty_; }
  FakeClock& clock() { return clock_; }

  // What the operator had in memory is lost; calls fail no more.
  void StartOperator();
  // Its next calls fail until it is started again.
  void KillOperator();
  bool alive() const { return alive_; }
  // Another operator over the same store, to which nothing happens: as when the lease was lost and the loser does not know.
  void StartSecondOperator();
  void StopSecondOperator() { second_.reset(); }
  bool has_second_operator() const { return second_ != nullptr; }

  // Brings one watch event, or lets the loop work on one job; false when there is none.
  bool DeliverOne() { return store_.Deliver(1) > 0; }
  bool StepOne();
  // Until nothing is left to do; false when that does not come to an end.
  bool RunUntilIdle();
  // Moves the clock, running whatever becomes due on the way; false as above.
  bool Advance(Duration by);

  // The job as the server holds it; nothing when there is none. One whose spec does not decode has none.
  std::optional<api::TFJob> Job();
  std::vector<std::shared_ptr<const objects::Pod>> Pods();
  std::vector<std::shared_ptr<const objects::Service>> Services();
  // Of the scheduler-plugins.
  std::vector<std::shared_ptr<const objects::CustomResource>> PodGroups();
  // How many calls of the first operator have changed something, or tried to; with or without events.
  int Writes(bool events);

  static client::Key KeyOf(client::Kind kind, const std::string& name) {
    return {kind, kNamespace, name};
  }

 private:
  std::unique_ptr<control::Manager> NewOperator(client::Client& client);
  // Until the next of the operators' timers.
  std::optional<Duration> NextTimer();

  const Duration count_patience_;
  FakeClock clock_;
  store::Store store_;
  client::FaultyClient faulty_;
  bool alive_ = true;
  std::unique_ptr<control::Manager> manager_;
  std::unique_ptr<control::Manager> second_;
  bool turn_of_second_ = false;
};

}  // namespace tfjob::simulation
