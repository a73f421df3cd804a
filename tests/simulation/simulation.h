// Simulates a TFJob from its creation until nothing changes any more. The seed determines all
// random choices.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/simulation/cluster.h"
#include "tests/simulation/invariants.h"

namespace tfjob::simulation {

class Simulation {
 public:
  // For two thirds of the seeds, the operators have keys. Independently, for half of the seeds, the
  // jobs have NetworkPolicies.
  explicit Simulation(uint64_t seed)
      : random_(seed),
        cluster_({.seed = ~seed,
                  .count_patience = seed % 2 == 0 ? 0ms : 300ms,
                  .has_keys = seed % 3 != 0,
                  .has_policies = seed / 6 % 2 == 1}) {}

  // Runs the simulation. Returns "" if all invariants held, and otherwise the violation and the
  // events that led to it.
  std::string Run();

 private:
  int Between(int least, int most);
  bool OneIn(int count) { return Between(1, count) == 1; }
  template <typename Value>
  const Value& Choose(const std::vector<Value>& values) {
    return values[static_cast<size_t>(Between(0, static_cast<int>(values.size()) - 1))];
  }
  void Tell(std::string what) { story_.push_back(std::move(what)); }
  std::string Story(const std::string& problem) const;

  // Performs a random action of the kubelet, the user or a foreign client, or a random disturbance.
  void Act();
  void ActOfUser();
  // Returns a random replica type of the job, or "" if the job has none.
  std::string ChooseTypeOf(const api::TFJob& job);
  void EditReplicas(const api::TFJob& job);
  void EditPorts(const api::TFJob& job);
  void ActOfKubelet();
  void ActOfStranger();
  // Hold adds a foreign finalizer to a random object. Release removes all finalizers that Hold
  // has added.
  void Hold();
  void Release();
  void Disturb();
  void CutWatches();
  // Lets the loop and the watches make a random amount of progress. Returns "" or, if the loop
  // never becomes idle, the problem.
  std::string GetOn();
  // Runs without faults and with a correct kubelet until nothing changes any more.
  std::string Calm();
  void BeHonestKubelet();

  void CreateJob();
  Json RandomReplicas(int least, int most);
  void Patch(const char* what, const Json& patch);
  void Report(const objects::Pod& pod);
  // Ends the container. `stopped` is true if the container exits because of the pod's disruption.
  void EndContainer(objects::Pod& pod, int code, bool stopped);
  void Evict(objects::Pod& pod);
  // Deletes the pod. In half of the cases, evicts it first, as `kubectl drain` does.
  void DeletePod(const objects::Pod& pod);
  client::Fault RandomFault();

  std::mt19937_64 random_;
  Cluster cluster_;
  Invariants invariants_;
  std::vector<client::Key> held_;  // objects with a finalizer from Hold
  std::vector<std::string> story_;
  bool is_quiet_ = false;            // the operator has seen all changes so far
  bool calls_may_fail_ = false;      // calls by the operator
  bool events_may_be_lost_ = false;  // the server refuses some events
};

}  // namespace tfjob::simulation
