// What must hold of a job, its pods and its services: at every moment, and when all is quiet.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tests/simulation/cluster.h"

namespace tfjob::simulation {

// Watches a life from moment to moment.
class Invariants {
 public:
  // "" while everything holds; otherwise what does not.
  std::string Check(Cluster& cluster);

 private:
  std::string CheckStatus(const api::TFJob& job);
  std::string CheckPods(const api::TFJob& job, Cluster& cluster);

  std::optional<api::TFJob> before_;         // as last seen
  std::map<std::string, int32_t> attempts_;  // by UID of pods that exist
};

// Nobody does anything any more and all timers are over: whether pods and services are those that the job should have, and the
// status tells what is there.
std::string CheckQuiet(Cluster& cluster);

}  // namespace tfjob::simulation
