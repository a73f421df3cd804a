// Implements the processes of a simulated job: parameter servers, and training tasks that use the
// real client as runtime/train does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ps/client/client.h"
#include "runtime/ps/server/server.h"
#include "tests/simulation/training/network.h"
#include "tests/simulation/training/oracle.h"
#include "tests/simulation/training/plan.h"
#include "tests/simulation/training/story.h"

namespace tfjob::simulation {

// The environment, which all processes of a job share.
struct World {
  World(Machine& simulated, const Plan& the_plan, uint64_t seed)
      : machine(simulated),
        plan(the_plan),
        network(machine, seed + 1, plan.network),
        dice(seed + 2),
        story(machine),
        oracle(plan, story) {}

  Machine& machine;
  const Plan& plan;
  Network network;
  Dice dice;
  Story story;
  Oracle oracle;
  // The last checkpoint, which outlives the chief's process, or nullopt if none was saved.
  std::optional<state::Snapshot> checkpoint;
  bool run_over = false;  // the chief has saved the last step
  int workers_done = 0;
};

// One process of a task. Once it has been killed, it is cut off from the network, and its further
// actions have no effect.
struct Process {
  int number = 0;  // the number of the process on the machine
  const TaskPlan* task = nullptr;
  int rank = -1;  // rank among the training tasks; -1 for other tasks
  bool killed = false;
  bool terminating = false;  // the process was asked to stop
  Duration hang{0};          // how much longer the next batch takes
  std::optional<Duration> waits_since;
  std::weak_ptr<ps::ParameterServer> server;

  std::string name() const { return StrCat(task->type, " ", task->index); }
  Place place() const { return {number, StrCat(task->type, "-", task->index)}; }
};

// Run a process, on its main thread. Return OK if the work of the process is done, Cancelled if it
// was asked to stop, and otherwise its error.
Status RunServer(World& world, Process& process);
Status RunTrainer(World& world, Process& process);

}  // namespace tfjob::simulation
