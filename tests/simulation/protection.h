// Simulates the keys that protect the tasks of a job. The keys are rotated while jobs run, and
// reach each operator at a different time. Checks the invariants of the keys and of the jobs'
// NetworkPolicies.
#pragma once

#include <array>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "operator/control/settings.h"
#include "operator/keys/key_ring.h"
#include "runtime/base/clock.h"

namespace tfjob::simulation {

class Cluster;

// A Secret to which keys are added at random times in the first minutes of a simulation.
class KeySecret {
 public:
  // `clock` must outlive this object.
  KeySecret(uint64_t seed, Clock& clock);

  // Returns a function that reads the keys from the mount of a new operator. The mount shows
  // changes of the Secret with a delay of up to kMostLag. This object must outlive the function.
  control::GetKeys Mount();

 private:
  static constexpr int kKeys = 4;
  static constexpr uint64_t kMostLag = 90;  // in seconds; less than DecisionOptions::key_patience

  std::mt19937_64 random_;
  Clock& clock_;
  std::array<Duration, kKeys> added_at_;
  // rings_[n] contains the first n keys.
  std::array<std::shared_ptr<const keys::KeyRing>, kKeys + 1> rings_;
};

class Protection {
 public:
  // Call this after each step. If jobs get NetworkPolicies, checks that no pod was created before
  // its job had one. Also checks that all pods of an attempt have the same key, unless there has
  // ever been a second operator. Returns "" or a description of the violation.
  std::string Check(Cluster& cluster);

 private:
  std::set<std::string> seen_;  // UIDs of pods
};

// Checks that the job has a NetworkPolicy if and only if it should have one. Call this only when
// nothing changes in the cluster any more. Returns "" or a description of the violation.
std::string CheckPolicy(Cluster& cluster);

}  // namespace tfjob::simulation
