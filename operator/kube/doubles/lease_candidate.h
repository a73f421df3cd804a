// Provides a candidate for the lease, for tests. The test sets the candidate's clock, and can make
// its calls to the server fail.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/client/faults.h"
#include "operator/kube/leader/lease.h"
#include "operator/local/store/store.h"

namespace tfjob::kube {

inline const client::Key kLeaseKey{objects::Kind::kLease, "tfjob-system", "tfjob-operator"};

// Returns the wall time and the monotonic time that the test sets, independently of each other.
class TestClock : public Clock {
 public:
  Time Now() override { return wall; }
  Duration Monotonic() override { return steady; }
  void Advance(Duration by) {
    wall += by;
    steady += by;
  }

  Time wall = *ParseTime("2026-11-21T09:30:00Z");
  Duration steady{0};
};

class Candidate {
 public:
  Candidate(
      client::Client& server, const std::string& identity, Clock& clock,
      std::function<double()> uniform = [] { return 0.0; })
      : client(server) {
    LeaseOptions options;
    options.name_space = kLeaseKey.name_space;
    options.name = kLeaseKey.name;
    options.identity = identity;
    options.clock = &clock;
    options.uniform = std::move(uniform);
    LeaseCallbacks callbacks;
    callbacks.on_started_leading = [this] { ++started; };
    callbacks.on_lost = [this](const Status& why) {
      ++lost;
      reason = why;
      held_when_lost = election->leading();
    };
    callbacks.on_new_leader = [this](const std::string& leader) { leaders.push_back(leader); };
    callbacks.on_slow_renewal = [this] { ++slow_renewals; };
    election = *LeaderElection::Create(client, options, callbacks);
  }

  bool leads() const { return election->leading(); }
  std::optional<Duration> Step() { return election->Step(); }
  // Makes every later call fail before it reaches the server.
  void Cut() {
    client.Inject({[](const client::Call&) { return true; }, 1, 1 << 30,
                   Unavailable("connection refused"), false, nullptr});
  }

  client::FaultyClient client;
  int started = 0;
  int lost = 0;
  int slow_renewals = 0;
  bool held_when_lost = false;
  Status reason;
  std::vector<std::string> leaders;
  std::unique_ptr<LeaderElection> election;
};

inline store::StoreOptions StoreOptions() {
  store::StoreOptions options;
  options.deliver_by_hand = true;
  return options;
}

// Returns a fault that makes the next call with this verb fail.
inline client::Fault FaultOf(client::Verb verb, Status error, bool executed = false) {
  return {[verb](const client::Call& call) { return call.verb == verb; },
          1,
          1,
          std::move(error),
          executed,
          nullptr};
}

}  // namespace tfjob::kube
