#include "runtime/collectives/plan/plan.h"

#include <algorithm>
#include <bit>

#include "runtime/base/check.h"
#include "runtime/collectives/plan/plan_builder.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {
namespace {

// The limits up to which the algorithm `exchange` is used. It sends (n − 1) times the bytes, so it
// suits only few ranks. The limits also bound the scratch memory.
constexpr int kMostExchangeRanks = 8;
constexpr int64_t kMostExchangeBytes = 1 << 20;  // sent by one rank
constexpr int64_t kMostDoublingBytes = 256 << 10;

// The work of the busiest rank in an operation.
struct Work {
  double rounds = 0;
  double frames = 0;  // sent and received
  double bytes = 0;   // sent or received, whichever is more
  double reduced = 0;
};

// Returns the numbers of rounds and of frames of the busiest rank if `ranks` ranks climb their
// tree.
Work ClimbWork(int ranks) {
  if (ranks == 1) return {};
  const int left = TreeMiddle(0, ranks), right = ranks - left;
  const Work in_left = ClimbWork(left), in_right = ClimbWork(right);
  const int served = (left + right - 1) / right;  // ranks that one rank of the right half serves
  return {.rounds = std::max(in_left.rounds, in_right.rounds) + 1,
          .frames = std::max(in_left.frames + 2, in_right.frames + served + 1),
          .bytes = std::max(in_left.bytes + 1, in_right.bytes + served)};
}

Work DoublingWork(double bytes, int ranks) {
  Work work = ClimbWork(ranks);
  work.bytes *= bytes;
  work.reduced = 2 * bytes * work.rounds;
  return work;
}

Work AllReduceWork(double bytes, double ranks, Algorithm algorithm, double pieces) {
  const double part = bytes * (ranks - 1) / ranks;
  const double rounds = std::bit_width(static_cast<unsigned>(ranks) - 1);
  switch (algorithm) {
    case Algorithm::kExchange:
      return {1, 2 * (ranks - 1), (ranks - 1) * bytes, ranks * bytes};
    case Algorithm::kDoubling:
      return DoublingWork(bytes, static_cast<int>(ranks));
    case Algorithm::kHalving:
      return {2 * rounds, 4 * rounds, 2 * part, 2 * part};
    case Algorithm::kDirect:
      return {2, 4 * (ranks - 1) * pieces, 2 * part, bytes};
  }
  return {};
}

Work BroadcastWork(double bytes, double ranks, Algorithm algorithm, double pieces) {
  const double rounds = std::bit_width(static_cast<unsigned>(ranks) - 1);
  if (algorithm == Algorithm::kDoubling) return {rounds, rounds, rounds * bytes, 0};
  return {2, (2 * ranks - 3) * pieces, bytes, 0};
}

Work WorkOf(const Call& call, double ranks, Algorithm algorithm, const Costs& costs) {
  const auto bytes = static_cast<double>(call.bytes);
  const double part = bytes * (ranks - 1) / ranks;
  const double slices = call.operation == Operation::kBroadcast ? ranks - 1 : ranks;
  const double pieces = std::max(1.0, bytes / slices / static_cast<double>(costs.piece_bytes));
  switch (call.operation) {
    case Operation::kAllReduce:
      return AllReduceWork(bytes, ranks, algorithm, pieces);
    case Operation::kBroadcast:
      return BroadcastWork(bytes, ranks, algorithm, pieces);
    case Operation::kReduce:
      if (algorithm == Algorithm::kExchange) {
        return {1, ranks - 1, (ranks - 1) * bytes, ranks * bytes};
      }
      return {2, 3 * (ranks - 1) * pieces, 2 * part, bytes};
    case Operation::kReduceScatter:
      return {1, 2 * (ranks - 1) * pieces, part, bytes};
    case Operation::kAllToAll:
      return {1, 2 * (ranks - 1) * pieces, part, 2 * part};
    case Operation::kBarrier:
    case Operation::kAllocate: {
      const double rounds = std::bit_width(static_cast<unsigned>(ranks) - 1);
      return {rounds, 2 * rounds, 0, 0};
    }
    default:
      return {1, 2 * (ranks - 1), part, 0};
  }
}

uint64_t FingerprintOf(const Plan& plan, const Costs& costs) {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a over words
  for (const int64_t word :
       {static_cast<int64_t>(plan.call.operation), plan.call.bytes, plan.call.element_bytes,
        static_cast<int64_t>(plan.call.dtype), static_cast<int64_t>(plan.call.reduction),
        int64_t{plan.call.root}, int64_t{plan.ranks}, static_cast<int64_t>(plan.algorithm),
        costs.piece_bytes}) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x100000001B3;
    hash ^= hash >> 29;
  }
  return hash;
}

void AddSteps(PlanBuilder& builder, const Plan& plan) {
  const bool exchange = plan.algorithm == Algorithm::kExchange;
  switch (plan.call.operation) {
    case Operation::kAllReduce:
      if (exchange) return AddExchange(builder);
      if (plan.algorithm == Algorithm::kDoubling) return AddDoubling(builder);
      if (plan.algorithm == Algorithm::kHalving) return AddHalving(builder);
      return AddDirect(builder, plan.call.operation);
    case Operation::kReduceScatter:
      return AddDirect(builder, plan.call.operation);
    case Operation::kReduce:
      return exchange ? AddReduceAtRoot(builder) : AddDirect(builder, plan.call.operation);
    case Operation::kAllGather:
    case Operation::kAllGatherVariable:
      return AddGather(builder);
    case Operation::kBroadcast:
      return plan.algorithm == Algorithm::kDoubling ? AddBroadcastTree(builder)
                                                    : AddBroadcastSlices(builder);
    case Operation::kAllToAll:
      return AddAllToAll(builder);
    case Operation::kBarrier:
    case Operation::kAllocate:
      return AddBarrier(builder);
  }
}

}  // namespace

std::span<const PlanRange> Plan::OperandsOf(const Step& step) const {
  return std::span(operands).subspan(static_cast<size_t>(step.first_operand),
                                     static_cast<size_t>(step.operands));
}

std::span<const int> Plan::AfterOf(const Step& step) const {
  return std::span(after).subspan(static_cast<size_t>(step.first_after),
                                  static_cast<size_t>(step.afters));
}

std::vector<Algorithm> Candidates(const Call& call, int ranks) {
  std::vector<Algorithm> found;
  const bool few =
      ranks <= kMostExchangeRanks && call.bytes <= kMostExchangeBytes / std::max(1, ranks - 1);
  switch (call.operation) {
    case Operation::kAllReduce:
      if (few) found.push_back(Algorithm::kExchange);
      if (call.bytes <= kMostDoublingBytes) found.push_back(Algorithm::kDoubling);
      if (ranks >= 4 && std::has_single_bit(static_cast<unsigned>(ranks))) {
        found.push_back(Algorithm::kHalving);
      }
      found.push_back(Algorithm::kDirect);
      break;
    case Operation::kReduce:
      if (few) found.push_back(Algorithm::kExchange);
      found.push_back(Algorithm::kDirect);
      break;
    case Operation::kBroadcast:
      found.push_back(Algorithm::kDoubling);
      if (ranks >= 3) found.push_back(Algorithm::kDirect);
      break;
    case Operation::kBarrier:
    case Operation::kAllocate:
      found.push_back(Algorithm::kDoubling);
      break;
    default:
      found.push_back(Algorithm::kDirect);
  }
  return found;
}

double PredictSeconds(const Call& call, int ranks, Algorithm algorithm, const Costs& costs) {
  if (ranks == 1) return 0;
  const Work work = WorkOf(call, ranks, algorithm, costs);
  return work.rounds * costs.round + work.frames * costs.frame + work.bytes * costs.byte +
         work.reduced * costs.reduced_byte;
}

Algorithm ChooseAlgorithm(const Call& call, int ranks, const Costs& costs) {
  const std::vector<Algorithm> candidates = Candidates(call, ranks);
  return *std::ranges::min_element(candidates, {}, [&](Algorithm algorithm) {
    return PredictSeconds(call, ranks, algorithm, costs);
  });
}

Plan MakePlan(const Call& call, int rank, int ranks, const Costs& costs) {
  return MakePlan(call, rank, ranks, costs, ChooseAlgorithm(call, ranks, costs));
}

Plan MakePlan(const Call& call, int rank, int ranks, const Costs& costs, Algorithm algorithm) {
  ENFORCE(rank >= 0 && rank < ranks && call.root >= 0 && call.root < ranks, "ranks of the group");
  ENFORCE(call.bytes >= 0 && call.bytes % call.element_bytes == 0, "whole elements");
  Plan plan{.call = call, .rank = rank, .ranks = ranks, .algorithm = algorithm};
  plan.predicted_s = PredictSeconds(call, ranks, algorithm, costs);
  plan.fingerprint = FingerprintOf(plan, costs);
  if (ranks == 1) return plan;
  PlanBuilder builder(plan, costs);
  AddSteps(builder, plan);
  return plan;
}

void MakeVariableGather(std::span<const size_t> sizes, int rank, Plan& plan) {
  plan.steps.clear();
  plan.operands.clear();
  plan.after.clear();
  plan.rank = rank;
  plan.ranks = static_cast<int>(sizes.size());
  plan.algorithm = Algorithm::kDirect;
  plan.call = {.operation = Operation::kAllGatherVariable};
  for (const size_t size : sizes) plan.call.bytes += static_cast<int64_t>(size);
  plan.fingerprint = FingerprintOf(plan, Costs());
  const Costs costs;
  PlanBuilder builder(plan, costs);
  const auto slice_of = [&](int other) {
    Slice slice;
    for (int i = 0; i < other; ++i) slice.begin += static_cast<int64_t>(sizes[i]);
    slice.count = static_cast<int64_t>(sizes[static_cast<size_t>(other)]);
    return slice;
  };
  for (int i = 1; i < plan.ranks; ++i) builder.Send(builder.Peer(i), slice_of(rank));
  for (int i = 1; i < plan.ranks; ++i) builder.Receive(builder.Peer(i), slice_of(builder.Peer(i)));
}

}  // namespace tfjob::collectives
