// Derives the settings of a simulated job, and its faults, from a seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ps/definition.h"
#include "runtime/rpc/liveness.h"
#include "tests/simulation/training/network.h"

namespace tfjob::simulation {

struct Fault {
  enum class Kind {
    kKill,       // kill -9; a successor starts after `time`
    kVanish,     // the node fails without notice; a successor starts after `time`
    kTerminate,  // SIGTERM; a successor starts after `time`
    kPause,      // SIGSTOP for `time`
    kHang,       // the next batch takes `time` longer; the process stays connected
    kCut,        // a random stream breaks
    kTear,       // the next stream that has delivered only a part of a frame breaks
    kPart,       // nothing is delivered between the task and `other` for `time`
  };
  Kind kind = Kind::kKill;
  Duration at{0};
  Duration time{0};
  size_t task = 0;  // index of the task in Plan::tasks
  size_t other = 0;
};
std::string ToString(Fault::Kind kind);

struct TaskPlan {
  std::string type;  // "ps", "chief", "worker"
  int index = 0;
  Duration start{0};
  Duration compute{0};  // the maximum time that a batch takes
};

struct Plan {
  ps::Definition definition;
  int64_t max_steps = 0;
  // A row of a variable has `batches` elements per training task, one for each batch. Batches are
  // numbered from 1, so the first element of a task is not used.
  int64_t batches = 0;
  std::vector<TaskPlan> tasks;
  int servers = 0;
  int trainers = 0;  // the chief and the workers
  rpc::LivenessRules liveness;
  double step_lease_factor = 0;
  Duration step_lease_least{0};
  std::optional<int64_t> max_staleness;
  Duration stop_patience{5s};  // see ClientOptions
  int64_t save_every = 0;      // steps between two checkpoints
  Duration save_takes{0};
  NetworkRules network;
  double interruption = 0;
  Duration skew{0};  // the maximum difference between clocks
  std::vector<Fault> faults;

  bool synchronous() const { return definition.mode == ps::Mode::kSynchronous; }
};

Plan MakePlan(uint64_t seed);
std::string Describe(const Plan& plan);

}  // namespace tfjob::simulation
