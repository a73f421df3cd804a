#include "runtime/collectives/plan/plan_builder.h"

namespace tfjob::collectives {
namespace {

constexpr int64_t kScratchAlignment = 64;

}  // namespace

Slice PieceOf(Slice slice, int piece, int pieces) {
  const Slice part = SliceOf(slice.count, piece, pieces);
  return {slice.begin + part.begin, part.count};
}

int PlanBuilder::Add(Step step, std::span<const int> after) {
  step.first_after = static_cast<int>(plan_.after.size());
  for (const int index : after) {
    if (index >= 0) plan_.after.push_back(index);
  }
  step.afters = static_cast<int>(plan_.after.size()) - step.first_after;
  plan_.steps.push_back(step);
  return static_cast<int>(plan_.steps.size()) - 1;
}

int PlanBuilder::Send(int peer, Slice slice, std::span<const int> after) {
  const PlanRange range = Values(slice);
  return Add({.kind = StepKind::kSend, .peer = peer, .range = range, .offset = range.begin}, after);
}

int PlanBuilder::Receive(int peer, Slice slice, std::initializer_list<int> after) {
  const PlanRange range = Values(slice);
  return Add({.kind = StepKind::kReceive, .peer = peer, .range = range, .offset = range.begin},
             std::span(after.begin(), after.size()));
}

int PlanBuilder::ReceiveAside(int peer, Slice slice, int64_t scratch,
                              std::initializer_list<int> after) {
  return Add({.kind = StepKind::kReceive,
              .peer = peer,
              .range = Scratch(scratch, slice),
              .offset = Values(slice).begin},
             std::span(after.begin(), after.size()));
}

int PlanBuilder::SendRange(int peer, const PlanRange& range, std::span<const int> after) {
  return Add({.kind = StepKind::kSend, .peer = peer, .range = range, .offset = range.begin}, after);
}

int PlanBuilder::ReceiveRange(int peer, const PlanRange& range, int64_t offset,
                              std::span<const int> after) {
  return Add({.kind = StepKind::kReceive, .peer = peer, .range = range, .offset = offset}, after);
}

int PlanBuilder::Reduce(Slice target, std::span<const PlanRange> operands,
                        std::span<const int> after, bool completes) {
  return ReduceRange(Values(target), operands, after, completes);
}

int PlanBuilder::ReduceRange(const PlanRange& target, std::span<const PlanRange> operands,
                             std::span<const int> after, bool completes) {
  Step step{.kind = StepKind::kReduce, .range = target};
  step.offset = step.range.begin;
  step.first_operand = static_cast<int>(plan_.operands.size());
  step.operands = static_cast<int>(operands.size());
  step.completes = completes || step.operands == plan_.ranks;
  plan_.operands.insert(plan_.operands.end(), operands.begin(), operands.end());
  return Add(step, after);
}

PlanRange PlanBuilder::Values(Slice slice) const {
  const int64_t size = plan_.call.element_bytes;
  return {PlanMemory::kValues, slice.begin * size, slice.count * size};
}

PlanRange PlanBuilder::Shared(int rank, Slice slice) const {
  PlanRange range = Values(slice);
  range.memory = PlanMemory::kShared;
  range.rank = rank;
  return range;
}

PlanRange PlanBuilder::Scratch(int64_t begin, Slice slice) const {
  return {PlanMemory::kScratch, begin, slice.count * plan_.call.element_bytes};
}

int64_t PlanBuilder::ReserveScratch(int64_t slots, int64_t elements) {
  const int64_t bytes = elements * plan_.call.element_bytes;
  const int64_t slot = (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  plan_.scratch_bytes = std::max(plan_.scratch_bytes, slots * slot);
  return slot;
}

int PlanBuilder::Pieces(int64_t elements) const {
  const int64_t bytes = elements * plan_.call.element_bytes;
  return static_cast<int>(std::max<int64_t>(1, (bytes - 1) / costs_.piece_bytes + 1));
}

}  // namespace tfjob::collectives
