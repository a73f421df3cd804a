// Prints plans.
#include <cstdio>

#include "runtime/base/status.h"
#include "runtime/collectives/plan/plan.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {
namespace {

std::string RangeText(const PlanRange& range) {
  const std::string bounds = StrCat("[", range.begin, ", ", range.begin + range.bytes, ")");
  switch (range.memory) {
    case PlanMemory::kValues:
      return "values" + bounds;
    case PlanMemory::kScratch:
      return "scratch" + bounds;
    case PlanMemory::kShared:
      return range.bytes == 0 ? "a signal" : StrCat("shared", bounds, " of ", range.rank);
    case PlanMemory::kPlace:
      return StrCat("the place of the values of ", range.rank);
  }
  return "";
}

std::string ReductionText(const Plan& plan, const Step& step) {
  std::string operands;
  for (const PlanRange& operand : plan.OperandsOf(step)) {
    operands += StrCat(operands.empty() ? "" : ", ", RangeText(operand));
  }
  if (step.operands == 1) return StrCat(RangeText(step.range), " = copy(", operands, ")");
  const bool partial = step.operands < plan.ranks;
  const bool mean = plan.call.reduction == Reduction::kMean;
  return StrCat(RangeText(step.range), " = ",
                Name(partial && mean ? Reduction::kSum : plan.call.reduction), "(", operands, ")",
                partial && mean && step.completes ? StrCat(" / ", plan.ranks) : "");
}

std::string StepText(const Plan& plan, const Step& step) {
  switch (step.kind) {
    case StepKind::kSend:
      return StrCat("send ", RangeText(step.range), " to ", step.peer);
    case StepKind::kReceive:
      return StrCat("receive ", RangeText(step.range), " from ", step.peer);
    case StepKind::kReduce:
      return ReductionText(plan, step);
  }
  return "";
}

std::string LinkText(const Plan& plan, int peer) {
  int64_t bytes[2] = {}, frames[2] = {};
  for (const Step& step : plan.steps) {
    if (step.peer != peer) continue;
    const int way = step.kind == StepKind::kSend ? 0 : 1;
    bytes[way] += step.range.bytes;
    ++frames[way];
  }
  if (frames[0] + frames[1] == 0) return "";
  return StrCat("  rank ", peer, ": sends ", bytes[0], " bytes in ", frames[0],
                " frames, receives ", bytes[1], " bytes in ", frames[1], " frames\n");
}

std::string Microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

}  // namespace

std::string_view Name(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "AllReduce";
    case Operation::kReduceScatter:
      return "ReduceScatter";
    case Operation::kAllGather:
      return "AllGather";
    case Operation::kAllGatherVariable:
      return "AllGatherVariable";
    case Operation::kBroadcast:
      return "Broadcast";
    case Operation::kReduce:
      return "Reduce";
    case Operation::kAllToAll:
      return "AllToAll";
    case Operation::kBarrier:
      return "Barrier";
    case Operation::kAllocate:
      return "Allocate";
  }
  return "an unknown operation";
}

std::string_view Name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kExchange:
      return "exchange";
    case Algorithm::kDoubling:
      return "doubling";
    case Algorithm::kHalving:
      return "halving";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kTwoLevels:
      return "two levels";
    case Algorithm::kRing:
      return "ring";
  }
  return "unknown";
}

std::string ToString(const Call& call) {
  const std::string start = StrCat(Name(call.operation), "(", call.bytes, " bytes");
  const std::string_view dtype = Name(call.dtype), reduction = Name(call.reduction);
  switch (call.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter:
      return StrCat(start, " of ", dtype, ", ", reduction, ")");
    case Operation::kReduce:
      return StrCat(start, " of ", dtype, ", ", reduction, ", root ", call.root, ")");
    case Operation::kBroadcast:
      return StrCat(start, ", root ", call.root, ")");
    case Operation::kAllGather:
    case Operation::kAllToAll:
      return StrCat(start, ", elements of ", call.element_bytes, ")");
    case Operation::kBarrier:
      return "Barrier";
    default:
      return start + ")";
  }
}

std::string ToString(const Plan& plan) {
  std::string text =
      StrCat(ToString(plan.call), ", rank ", plan.rank, " of ", plan.ranks, ": ",
             Name(plan.algorithm), ", predicted ", Microseconds(plan.predicted_s), "\n");
  if (plan.hosts.known()) text += StrCat("  ", ToString(plan.hosts), "\n");
  for (int peer = 0; peer < plan.ranks; ++peer) text += LinkText(plan, peer);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    text += StrCat("  ", i, ": ", StepText(plan, plan.steps[i]));
    if (plan.steps[i].afters > 0) text += ", after";
    for (const int before : plan.AfterOf(plan.steps[i])) text += StrCat(" ", before);
    text += "\n";
  }
  return text;
}

}  // namespace tfjob::collectives
