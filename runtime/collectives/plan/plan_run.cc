#include "runtime/collectives/plan/plan_run.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {

PlanRun::PlanRun(Plan plan) : plan_(std::move(plan)) {
  Prepare();
}

void PlanRun::PlanVariableGather(std::span<const size_t> sizes, int rank) {
  MakeVariableGather(sizes, rank, plan_);
  Prepare();
}

void PlanRun::Prepare() {
  CollectQueues();
  CollectDependents();
  pending_.resize(plan_.steps.size());
  finished_.reserve(plan_.steps.size());
  size_t most = 0;
  for (const Step& step : plan_.steps) most = std::max(most, static_cast<size_t>(step.operands));
  operands_.resize(most);
  shared_.resize(static_cast<size_t>(plan_.ranks));
  places_.resize(static_cast<size_t>(plan_.ranks));
}

void PlanRun::CollectQueues() {
  links_.resize(static_cast<size_t>(plan_.ranks));
  order_.clear();
  for (int peer = 0; peer < plan_.ranks; ++peer) {
    for (const StepKind kind : {StepKind::kSend, StepKind::kReceive}) {
      Link& link = links_[static_cast<size_t>(peer)];
      Queue& queue = kind == StepKind::kSend ? link.sends : link.receives;
      queue.begin = static_cast<int>(order_.size());
      for (size_t i = 0; i < plan_.steps.size(); ++i) {
        const Step& step = plan_.steps[i];
        if (step.kind == kind && step.peer == peer) order_.push_back(static_cast<int>(i));
      }
      queue.end = static_cast<int>(order_.size());
    }
  }
}

void PlanRun::CollectDependents() {
  first_dependent_.assign(plan_.steps.size() + 1, 0);
  waits_for_.clear();
  for (const Step& step : plan_.steps) {
    waits_for_.push_back(step.afters);
    for (const int before : plan_.AfterOf(step)) {
      ++first_dependent_[static_cast<size_t>(before) + 1];
    }
  }
  for (size_t i = 1; i < first_dependent_.size(); ++i)
    first_dependent_[i] += first_dependent_[i - 1];
  dependents_.resize(plan_.after.size());
  std::vector<int>& next = pending_;  // borrowed: pending_ is not in use yet
  next.assign(first_dependent_.begin(), first_dependent_.end());
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    for (const int before : plan_.AfterOf(plan_.steps[i])) {
      dependents_[static_cast<size_t>(next[static_cast<size_t>(before)]++)] = static_cast<int>(i);
    }
  }
}

void PlanRun::Start(std::span<std::byte> values, std::span<std::byte> scratch) {
  const bool moves = plan_.call.operation != Operation::kAllocate;  // an Allocate moves no bytes
  ENFORCE(!moves || values.size() == static_cast<size_t>(plan_.call.bytes),
          "the bytes of the plan");
  ENFORCE(scratch.size() >= static_cast<size_t>(plan_.scratch_bytes), "the plan's scratch memory");
  values_ = values;
  scratch_ = scratch;
  left_ = plan_.steps.size();
  std::ranges::copy(waits_for_, pending_.begin());
  for (Link& link : links_) {
    link.sends.next = link.sends.begin;
    link.receives.next = link.receives.begin;
  }
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    if (step.kind != StepKind::kReduce || step.afters > 0) continue;
    Reduce(step);
    finished_.push_back(static_cast<int>(i));
  }
  FinishAll();
}

void PlanRun::Start(std::span<std::byte> values, std::span<std::byte> scratch,
                    const SharedSpan& own, const SharedPlace& place) {
  const auto rank = static_cast<size_t>(plan_.rank);
  std::ranges::fill(shared_, SharedSpan());
  shared_[rank] = own;
  places_[rank] = place;
  Start(values, scratch);
}

PlanRun::Transfer PlanRun::Next(const Queue& queue) const {
  if (!Left(queue)) return {};
  const auto index = static_cast<size_t>(order_[static_cast<size_t>(queue.next)]);
  if (pending_[index] > 0) return {};
  return {&plan_.steps[index], queue.next - queue.begin};
}

std::span<std::byte> PlanRun::Bytes(const PlanRange& range) const {
  if (range.memory == PlanMemory::kShared || range.memory == PlanMemory::kPlace) {
    return SharedBytes(range);
  }
  return (range.memory == PlanMemory::kValues ? values_ : scratch_)
      .subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.bytes));
}

std::span<std::byte> PlanRun::SharedBytes(const PlanRange& range) const {
  const auto rank = static_cast<size_t>(range.rank);
  if (range.memory == PlanMemory::kPlace) {
    return std::as_writable_bytes(std::span(places_).subspan(rank, 1));
  }
  const SharedSpan& span = shared_[rank];
  const int64_t begin = span.window > 0 ? range.begin % span.window : range.begin;
  ENFORCE(begin + range.bytes <= static_cast<int64_t>(span.bytes.size()), "a known shared span");
  return span.bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(range.bytes));
}

void PlanRun::Complete(Queue& queue) {
  ENFORCE(Next(queue).step != nullptr, "a transfer that may take place");
  finished_.push_back(order_[static_cast<size_t>(queue.next++)]);
  FinishAll();
}

void PlanRun::FinishAll() {
  while (!finished_.empty()) {
    const int index = finished_.back();
    finished_.pop_back();
    Finish(index);
  }
}

void PlanRun::Finish(int index) {
  --left_;
  const auto at = static_cast<size_t>(index);
  for (int i = first_dependent_[at]; i < first_dependent_[at + 1]; ++i) {
    const int dependent = dependents_[static_cast<size_t>(i)];
    if (--pending_[static_cast<size_t>(dependent)] > 0) continue;
    const Step& step = plan_.steps[static_cast<size_t>(dependent)];
    if (step.kind != StepKind::kReduce) continue;
    Reduce(step);
    finished_.push_back(dependent);
  }
}

void PlanRun::Reduce(const Step& step) {
  size_t count = 0;
  for (const PlanRange& operand : plan_.OperandsOf(step)) operands_[count++] = Bytes(operand);
  const std::span<std::byte> target = Bytes(step.range);
  if (count == 1) {
    if (operands_[0].data() == target.data()) return;
    std::ranges::copy(operands_[0], target.begin());
    return;
  }
  const auto [dtype, reduction] = std::pair(plan_.call.dtype, plan_.call.reduction);
  const bool partial = count < static_cast<size_t>(plan_.ranks);
  const bool mean = reduction == Reduction::kMean;
  CombineAll(dtype, partial && mean ? Reduction::kSum : reduction, target,
             std::span(operands_).first(count));
  if (partial && mean && step.completes) DivideByRanks(dtype, target, plan_.ranks);
}

}  // namespace tfjob::collectives
