#include "tests/simulation/training/plan.h"

#include <algorithm>

namespace tfjob::simulation {
namespace {

void PlanTasks(Plan& plan, Dice& dice) {
  plan.servers = static_cast<int>(dice.Number(1, 3));
  const int workers = static_cast<int>(dice.Number(1, 3));
  plan.trainers = 1 + workers;
  const Duration compute = dice.Time(5ms, 150ms);
  const Duration spread = dice.Chance(0.5) ? 100ms : 3s;
  const auto add = [&](const std::string& type, int index) {
    plan.tasks.push_back(
        {type, index, dice.Time(0ms, spread), dice.Chance(0.1) ? compute * 5 : compute});
  };
  for (int i = 0; i < plan.servers; ++i) add("ps", i);
  add("chief", 0);
  for (int i = 0; i < workers; ++i) add("worker", i);
}

void DefineState(Plan& plan, Dice& dice) {
  ps::Definition& definition = plan.definition;
  definition.mode = dice.Chance(0.6) ? ps::Mode::kSynchronous : ps::Mode::kAsynchronous;
  definition.replicas_to_aggregate = plan.trainers;
  if (dice.Chance(0.35)) {
    definition.replicas_to_aggregate = static_cast<int>(dice.Number(1, plan.trainers + 1));
  }
  for (const TaskPlan& task : plan.tasks) {
    if (task.type != "ps") definition.tasks.push_back({task.type, task.index});
  }
  definition.start_timeout = dice.Chance(0.8) ? Duration(30s) : dice.Time(0ms, 5s);
  definition.placement = dice.Chance(0.5) ? ps::Placement::kRoundRobin : ps::Placement::kBalanced;
  plan.max_steps = dice.Number(5, 25);
  // A single task may have to compute the batches of all steps, and to repeat those of steps that
  // were rolled back.
  plan.batches = (plan.max_steps + 10) * (plan.trainers + 1);
  const int variables = static_cast<int>(dice.Number(1, 3));
  for (int i = 0; i < variables; ++i) {
    definition.state.variables.push_back(
        {.name = StrCat("v", i),
         .shape = Shape({dice.Number(1, 3), plan.trainers * plan.batches})});
  }
  definition.state.optimizer.learning_rate = 0.5;
  if (dice.Chance(0.7)) definition.max_shard_bytes = plan.trainers * plan.batches * 4;
}

void LimitGradients(Plan& plan, Dice& dice) {
  if (!plan.synchronous()) {
    if (dice.Chance(0.5)) plan.max_staleness = dice.Number(0, plan.trainers);
    return;
  }
  // A limit that no gradient reaches. Gradients below the limit do not change, because the factor
  // is exactly 1.
  constexpr double kOutOfReach = 1 << 30;
  constexpr optimizer::ClipKind kKinds[] = {optimizer::ClipKind::kNorm,
                                            optimizer::ClipKind::kGlobalNorm};
  if (dice.Chance(0.5)) {
    plan.definition.clipping = {kKinds[dice.Number(0, std::size(kKinds) - 1)], kOutOfReach};
  }
}

Fault MakeFault(const Plan& plan, Dice& dice, Duration horizon) {
  using Kind = Fault::Kind;
  constexpr Kind kKinds[] = {Kind::kKill,      Kind::kKill,  Kind::kVanish,
                             Kind::kTerminate, Kind::kPause, Kind::kHang,
                             Kind::kCut,       Kind::kTear,  Kind::kPart};
  Fault fault;
  fault.kind = kKinds[dice.Number(0, std::size(kKinds) - 1)];
  fault.at = dice.Time(0ms, horizon);
  // The time may be shorter or longer than a lease.
  fault.time = dice.Chance(0.5) ? dice.Time(1ms, 1s) : dice.Time(1s, plan.liveness.lease * 2);
  const auto last = static_cast<int64_t>(plan.tasks.size()) - 1;
  fault.task = static_cast<size_t>(dice.Number(0, last));
  fault.other = static_cast<size_t>(dice.Number(0, last));
  return fault;
}

}  // namespace

std::string ToString(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kKill:
      return "kill";
    case Fault::Kind::kVanish:
      return "vanish";
    case Fault::Kind::kTerminate:
      return "terminate";
    case Fault::Kind::kPause:
      return "pause";
    case Fault::Kind::kHang:
      return "hang";
    case Fault::Kind::kCut:
      return "cut";
    case Fault::Kind::kTear:
      return "tear";
    case Fault::Kind::kPart:
      return "part";
  }
  return "";
}

Plan MakePlan(uint64_t seed) {
  Dice dice(seed);
  Plan plan;
  PlanTasks(plan, dice);
  DefineState(plan, dice);
  if (dice.Chance(0.5)) {
    plan.liveness.lease = dice.Time(1s, 10s);
    plan.liveness.suspect_after = plan.liveness.lease / 5;
  }
  plan.step_lease_factor = dice.Chance(0.8) ? 10 : 3;
  plan.step_lease_least = dice.Time(1s, 20s);
  plan.save_every = dice.Number(1, 8);
  if (dice.Chance(0.5)) plan.save_takes = dice.Time(1ms, 500ms);
  if (dice.Chance(0.2)) plan.network.delay_most = 50ms;
  plan.interruption = dice.Chance(0.3) ? 0 : dice.Chance(0.5) ? 0.02 : 0.2;
  if (dice.Chance(0.7)) plan.skew = std::chrono::hours(3);
  const int64_t faults = dice.Chance(0.2) ? 0 : dice.Number(1, 6);
  const Duration horizon = dice.Time(500ms, 8s);
  for (int64_t i = 0; i < faults; ++i) plan.faults.push_back(MakeFault(plan, dice, horizon));
  std::ranges::sort(plan.faults, {}, &Fault::at);
  LimitGradients(plan, dice);
  if (dice.Chance(0.5)) plan.stop_patience = dice.Time(50ms, 2s);
  return plan;
}

std::string Describe(const Plan& plan) {
  std::string text = StrCat(plan.synchronous() ? "synchronous" : "asynchronous", ", ", plan.servers,
                            " ps, ", plan.trainers, " training tasks, ",
                            plan.definition.replicas_to_aggregate, " gradients per step, ",
                            plan.max_steps, " steps, lease ", FormatDuration(plan.liveness.lease),
                            ", step lease ", FormatDuration(plan.step_lease_least),
                            ", start timeout ", FormatDuration(plan.definition.start_timeout),
                            ", a checkpoint every ", plan.save_every);
  if (plan.max_staleness) text += StrCat(", staleness up to ", *plan.max_staleness);
  if (plan.definition.clipping.kind == optimizer::ClipKind::kNorm) text += ", norms are limited";
  if (plan.definition.clipping.kind == optimizer::ClipKind::kGlobalNorm)
    text += ", the global norm is limited";
  for (const Fault& fault : plan.faults) {
    const TaskPlan& task = plan.tasks[fault.task];
    text += StrCat("\n  ", FormatDuration(fault.at), ": ", ToString(fault.kind), " ", task.type,
                   " ", task.index, " for ", FormatDuration(fault.time));
    if (fault.kind == Fault::Kind::kPart)
      text += StrCat(" from ", plan.tasks[fault.other].type, " ", plan.tasks[fault.other].index);
  }
  return text;
}

}  // namespace tfjob::simulation
