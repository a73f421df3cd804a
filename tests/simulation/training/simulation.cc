#include "tests/simulation/training/simulation.h"

#include <algorithm>

namespace tfjob::simulation {
namespace {

constexpr size_t kEventsShown = 120;
// A margin that is added to the time limits of the plan.
constexpr Duration kSlack{40s};
constexpr Duration kDeleteAfter{60s};

}  // namespace

TrainingSimulation::TrainingSimulation(uint64_t seed)
    : plan_(MakePlan(seed)),
      dice_(seed + 3),
      machine_(std::make_unique<Machine>(seed, plan_.interruption)),
      world_(std::make_unique<World>(*machine_, plan_, seed)) {
  int rank = 0;
  for (const TaskPlan& task : plan_.tasks)
    tasks_.push_back({.plan = task, .rank = task.type == "ps" ? -1 : rank++});
}

TrainingSimulation::~TrainingSimulation() {
  if (machine_->idle()) return;
  // If threads have not ended, their stacks cannot be unwound, so leak all objects.
  Scheduler::Install(nullptr);
  (void)machine_.release();
  (void)world_.release();
  for (auto& process : processes_) (void)process.release();
}

// ---- processes

void TrainingSimulation::Start(Task& task) {
  processes_.push_back(std::make_unique<Process>());
  Process& process = *processes_.back();
  process.number = static_cast<int>(processes_.size());
  process.task = &task.plan;
  process.rank = task.rank;
  task.process = &process;
  machine_->SetSkew(process.number, dice_.Time(-plan_.skew, plan_.skew));
  if (task.plan.type == "chief") {
    world_->run_over = false;
    RestartServers();
  }
  world_->story.Tell(process.name(), StrCat("starts as process ", process.number));
  machine_->Spawn(process.number, [this, &task, &process] {
    const Status end =
        process.rank < 0 ? RunServer(*world_, process) : RunTrainer(*world_, process);
    OnEnd(task, process, end);
  });
}

void TrainingSimulation::OnEnd(Task& task, Process& process, const Status& end) {
  if (process.killed) return;
  world_->story.Tell(process.name(), StrCat("ends: ", end.ToString()));
  // Actions of a process that has ended must have no effect.
  process.killed = true;
  world_->network.Kill(process.number, false);
  task.process = nullptr;
  if (end.ok()) {
    task.done = true;
    if (task.plan.type == "worker") ++world_->workers_done;
    if (process.rank < 0 && !world_->run_over) RestartServers();
    if (task.plan.type == "chief") OnJobEnd();
  } else if (!process.terminating) {
    world_->story.Violate(StrCat(process.name(), " failed: ", end.ToString()));
    task.done = true;
  }
}

// Called after the job has ended. By then, all servers that can be reached have been asked to exit.
// Deletes the remaining servers after a while, as the operator does.
void TrainingSimulation::OnJobEnd() {
  world_->run_over = true;
  machine_->After(kDeleteAfter, [this] {
    for (Task& task : tasks_) {
      if (task.plan.type != "ps" || task.done) continue;
      if (plan_.faults.empty())
        world_->story.Violate("a server did not learn that the job has ended");
      if (task.process != nullptr) Kill(task, false, Duration(0));
      task.done = true;
    }
  });
}

void TrainingSimulation::Restart(Task& task, Duration delay) {
  faults_end_ = std::max(faults_end_, machine_->elapsed() + delay);
  machine_->After(delay, [this, &task] {
    if (task.done) return;
    // A process that was asked to stop may still be running.
    if (task.process != nullptr) return Restart(task, 500ms);
    Start(task);
  });
}

// ---- faults

void TrainingSimulation::Kill(Task& task, bool silently, Duration restart_after) {
  Process& process = *task.process;
  world_->story.Tell(process.name(), silently ? "vanishes" : "is killed");
  process.killed = true;
  task.process = nullptr;
  world_->oracle.OnLost(task.plan);
  world_->network.Kill(process.number, silently);
  if (auto server = process.server.lock())
    machine_->Spawn(process.number, [server] { server->Stop(); });
  // The other tasks notice a silent end only when the lease has expired.
  if (silently) faults_end_ = std::max(faults_end_, machine_->elapsed() + plan_.liveness.lease);
  Restart(task, restart_after);
}

// Restarts servers that have exited because an earlier chief had requested this.
void TrainingSimulation::RestartServers() {
  for (Task& task : tasks_) {
    if (task.plan.type != "ps" || !task.done) continue;
    task.done = false;
    world_->oracle.OnLost(task.plan);
    Restart(task, 100ms);
  }
}

void TrainingSimulation::Terminate(Task& task, Duration restart_after) {
  Process& process = *task.process;
  world_->story.Tell(process.name(), "is asked to end");
  process.terminating = true;
  world_->oracle.OnLost(task.plan);
  if (auto server = process.server.lock())
    machine_->Spawn(process.number, [server] { server->End(15s); });
  faults_end_ = std::max(faults_end_, machine_->elapsed() + 20s);
  Restart(task, restart_after);
}

void TrainingSimulation::Inject(const Fault& fault) {
  Task& task = tasks_[fault.task];
  const Task& other = tasks_[fault.other];
  if (fault.kind == Fault::Kind::kCut) {
    world_->story.Tell("network", StrCat("breaks a stream: ", world_->network.CutAny()));
    return;
  }
  if (fault.kind == Fault::Kind::kTear) {
    world_->story.Tell("network", "breaks the next stream that has delivered a part of a frame");
    return world_->network.TearNext();
  }
  if (task.process == nullptr || task.process->terminating) return;
  faults_end_ = std::max(faults_end_, machine_->elapsed() + fault.time);
  switch (fault.kind) {
    case Fault::Kind::kKill:
      return Kill(task, false, fault.time);
    case Fault::Kind::kVanish:
      return Kill(task, true, fault.time);
    case Fault::Kind::kTerminate:
      return Terminate(task, fault.time);
    case Fault::Kind::kPause:
      world_->story.Tell(task.process->name(), StrCat("pauses for ", FormatDuration(fault.time)));
      return machine_->Pause(task.process->number, fault.time);
    case Fault::Kind::kHang:
      task.process->hang = fault.time;
      return;
    case Fault::Kind::kPart:
      if (fault.task == fault.other) return;
      world_->story.Tell("network", StrCat("parts ", task.plan.type, " ", task.plan.index, " from ",
                                           other.plan.type, " ", other.plan.index, " for ",
                                           FormatDuration(fault.time)));
      return world_->network.Part(StrCat(task.plan.type, "-", task.plan.index),
                                  StrCat(other.plan.type, "-", other.plan.index), fault.time);
    case Fault::Kind::kCut:
    case Fault::Kind::kTear:
      return;
  }
}

// ---- the run

bool TrainingSimulation::Ended() const {
  return std::ranges::all_of(tasks_, [](const Task& task) { return task.done; });
}

// Checks that no call by a client takes longer than the time limits of the plan allow.
void TrainingSimulation::CheckWaits() {
  const Duration most =
      plan_.liveness.lease + plan_.step_lease_least + plan_.definition.start_timeout + kSlack;
  for (const Task& task : tasks_) {
    if (task.process == nullptr || !task.process->waits_since) continue;
    const Duration since = std::max(*task.process->waits_since, faults_end_);
    if (machine_->elapsed() - since <= most) continue;
    world_->story.Violate(StrCat(task.process->name(), " waits since ", FormatDuration(since)));
    return;
  }
  if (!Ended()) machine_->After(1s, [this] { CheckWaits(); });
}

std::string TrainingSimulation::Run() {
  for (Task& task : tasks_) machine_->After(task.plan.start, [this, &task] { Start(task); });
  for (const Fault& fault : plan_.faults) {
    machine_->After(fault.at, [this, &fault] { Inject(fault); });
    faults_end_ = std::max(faults_end_, fault.at + fault.time);
  }
  machine_->After(1s, [this] { CheckWaits(); });
  const bool ended = machine_->RunUntil(
      [this] { return (machine_->idle() && Ended()) || !world_->story.violation().empty(); },
      30min);
  if (!ended) world_->story.Violate("the job does not end");
  if (!world_->story.violation().empty()) {
    return StrCat(Describe(plan_), "\n", world_->story.Last(kEventsShown));
  }
  return "";
}

}  // namespace tfjob::simulation
