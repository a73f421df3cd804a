// Simulates one life of a TFJob, determined by a seed.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/simulation/cluster.h"
#include "tests/simulation/invariants.h"

namespace tfjob::simulation {

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed), cluster_(seed % 2 == 0 ? 0ms : 300ms) {}

  // Returns "" if all invariants held, otherwise the violation and the events that led to it.
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

  // Performs a random action of one of the actors.
  void Act();
  void ActOfUser();
  void ActOfKubelet();
  void ActOfStranger();
  // Adds a foreign finalizer to a random object. Release removes all of these finalizers.
  void Hold();
  void Release();
  void Disturb();
  // Lets the loop and the watches make progress, but not always until they are idle.
  std::string GetOn();
  // Runs without faults and with a correct kubelet until nothing changes any more.
  std::string Calm();
  void BeHonestKubelet();

  void CreateJob();
  void Patch(const char* what, const Json& patch);
  void Report(const objects::Pod& pod);
  void EndContainer(objects::Pod& pod, int code);
  client::Fault RandomFault();

  std::mt19937_64 random_;
  Cluster cluster_;
  Invariants invariants_;
  std::vector<client::Key> held_;  // objects that finalizers keep
  std::vector<std::string> story_;
};

}  // namespace tfjob::simulation
