// Runs a job with parameter servers from start to end on a simulated machine: the real servers and
// clients, with their threads and locks, over a simulated network and clock. Processes are killed,
// paused and cut off at random times.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/training/process.h"

namespace tfjob::simulation {

class TrainingSimulation {
 public:
  explicit TrainingSimulation(uint64_t seed);
  // If the job has not ended, leaks its objects.
  ~TrainingSimulation();

  // Runs the job. Returns "" or, if there was a problem, a description of the problem and of the
  // events before it.
  std::string Run();
  // Two runs with the same seed must have the same fingerprint.
  uint64_t fingerprint() const { return machine_->fingerprint(); }
  // Returns all events, for a replay.
  std::string Story() const { return world_->story.Last(1 << 20); }

 private:
  struct Task {
    TaskPlan plan;
    int rank = -1;
    Process* process = nullptr;  // null if the task has no process
    bool done = false;
  };

  void Start(Task& task);
  void OnEnd(Task& task, Process& process, const Status& end);
  void OnJobEnd();
  void Restart(Task& task, Duration delay);
  void Inject(const Fault& fault);
  void Kill(Task& task, bool silently, Duration restart_after);
  void Terminate(Task& task, Duration restart_after);
  void RestartServers();
  void CheckWaits();
  bool Ended() const;

  const Plan plan_;
  Dice dice_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<World> world_;
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<Process>> processes_;
  Duration faults_end_{0};
};

}  // namespace tfjob::simulation
