#include "runtime/collectives/plan/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "runtime/base/check.h"
#include "runtime/collectives/plan/plan_builder.h"
#include "runtime/collectives/reduction.h"
#include "runtime/tensor/half.h"

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
  double signals = 0;  // rounds of signals between the ranks on a machine
  double shared = 0;   // bytes of neighbours that are read or written

  double Seconds(const Costs& costs) const {
    return rounds * costs.round + frames * costs.frame + bytes * costs.byte +
           reduced * costs.reduced_byte + signals * costs.signal + shared * costs.shared_byte;
  }
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
    case Algorithm::kTwoLevels:
      break;  // WorkOnMachine
    case Algorithm::kRing:
      return {2 * (ranks - 1), 4 * (ranks - 1) * pieces, 2 * part, 2 * part};
  }
  return {};
}

// Returns the work of the busiest rank on a machine in an AllReduce in two levels. `subtrees` is
// the number of subtrees of each machine.
Work WorkOnMachine(const Call& call, const Hosts& hosts, int machine,
                   const std::vector<double>& subtrees, const Costs& costs) {
  const auto bytes = static_cast<double>(call.bytes);
  const double machines = hosts.machines(), slices = hosts.MostRanksOnOne();
  const auto neighbours = static_cast<double>(hosts.RanksOn(machine).size()) - 1;
  const double own_slices = std::ceil(slices / (neighbours + 1));
  const double own_sums = subtrees[static_cast<size_t>(machine)];
  const double sums = std::accumulate(subtrees.begin(), subtrees.end(), 0.0);
  const double chunks = std::max(1.0, std::ceil(bytes / static_cast<double>(costs.chunk_bytes)));
  const double part = bytes / slices / machines;  // of a slice, for one machine
  const double pieces =
      std::max(1.0, std::ceil(part / chunks / static_cast<double>(costs.piece_bytes)));
  const double owned = bytes / slices * own_slices, owned_part = part * own_slices;
  const double frames = (machines - 1) * own_sums + (sums - own_sums) + 2 * (machines - 1);
  const double sent = (machines - 1) * (own_sums + 1), received = sums - own_sums + machines - 1;
  return {.rounds = 2 * chunks,
          .frames = frames * own_slices * pieces * chunks + 4 * neighbours * chunks,
          .bytes = std::max(sent, received) * owned_part,
          .reduced = sums * owned_part + (own_sums > neighbours ? 0 : owned),
          .signals = neighbours > 0 ? 2 * chunks : 0,
          .shared = 2 * owned * neighbours};
}

double PredictTwoLevels(const Call& call, const Hosts& hosts, const Costs& costs) {
  std::vector<double> subtrees(static_cast<size_t>(hosts.machines()));
  for (const Subtree& subtree : MaximalSubtrees(hosts)) {
    ++subtrees[static_cast<size_t>(subtree.machine)];
  }
  double most = 0;
  for (int machine = 0; machine < hosts.machines(); ++machine) {
    most = std::max(most, WorkOnMachine(call, hosts, machine, subtrees, costs).Seconds(costs));
  }
  return most;
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

bool Reduces(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
         operation == Operation::kReduce;
}

bool SendsPartialResults(Algorithm algorithm) {
  return algorithm == Algorithm::kDoubling || algorithm == Algorithm::kHalving ||
         algorithm == Algorithm::kTwoLevels || algorithm == Algorithm::kRing;
}

// Returns the algorithms that can execute a call of any size, add in the order of the tree, and do
// not need shared memory.
std::vector<Algorithm> FlatAlgorithms(const Call& call, int ranks) {
  switch (call.operation) {
    case Operation::kAllReduce: {
      if (IsHalf(call.dtype)) return {Algorithm::kExchange, Algorithm::kDirect};
      const bool halves = ranks >= 4 && std::has_single_bit(static_cast<unsigned>(ranks));
      if (!halves) return {Algorithm::kExchange, Algorithm::kDoubling, Algorithm::kDirect};
      return {Algorithm::kExchange, Algorithm::kDoubling, Algorithm::kHalving, Algorithm::kDirect};
    }
    case Operation::kReduce:
      return {Algorithm::kExchange, Algorithm::kDirect};
    case Operation::kBroadcast:
      if (ranks < 3) return {Algorithm::kDoubling};
      return {Algorithm::kDoubling, Algorithm::kDirect};
    case Operation::kBarrier:
    case Operation::kAllocate:
      return {Algorithm::kDoubling};
    default:
      return {Algorithm::kDirect};
  }
}

// Returns the algorithms that can execute a call of any size.
std::vector<Algorithm> AlgorithmsFor(const Call& call, int ranks, const Hosts& hosts) {
  std::vector<Algorithm> found = FlatAlgorithms(call, ranks);
  if (call.operation == Operation::kAllReduce && !IsHalf(call.dtype) && hosts.HasTwoLevels()) {
    found.push_back(Algorithm::kTwoLevels);
  }
  return found;
}

uint64_t FingerprintOf(const Plan& plan, const Costs& costs) {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a over words
  const auto add = [&hash](int64_t word) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x100000001B3;
    hash ^= hash >> 29;
  };
  for (const int64_t word :
       {static_cast<int64_t>(plan.call.operation), plan.call.bytes, plan.call.element_bytes,
        static_cast<int64_t>(plan.call.dtype), static_cast<int64_t>(plan.call.reduction),
        int64_t{plan.call.root}, int64_t{plan.ranks}, static_cast<int64_t>(plan.algorithm),
        costs.piece_bytes}) {
    add(word);
  }
  if (plan.hosts.known()) add(costs.chunk_bytes);
  for (int rank = 0; rank < plan.hosts.ranks(); ++rank) add(plan.hosts.MachineOf(rank));
  return hash;
}

void AddSteps(PlanBuilder& builder, const Plan& plan) {
  const bool exchange = plan.algorithm == Algorithm::kExchange;
  switch (plan.call.operation) {
    case Operation::kAllReduce:
      if (exchange) return AddExchange(builder);
      if (plan.algorithm == Algorithm::kDoubling) return AddDoubling(builder);
      if (plan.algorithm == Algorithm::kHalving) return AddHalving(builder);
      if (plan.algorithm == Algorithm::kTwoLevels) return AddTwoLevels(builder);
      if (plan.algorithm == Algorithm::kRing) return AddRing(builder);
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

Status CheckAlgorithm(const Call& call, int ranks, Algorithm algorithm, const Hosts& hosts) {
  std::vector<Algorithm> possible = AlgorithmsFor(call, ranks, hosts);
  if (call.operation == Operation::kAllReduce && !IsHalf(call.dtype)) {
    possible.push_back(Algorithm::kRing);
  }
  if (std::ranges::find(possible, algorithm) != possible.end()) return OkStatus();
  std::string names;
  for (const Algorithm other : possible) names += StrCat(names.empty() ? "" : " or ", Name(other));
  const char* why = "this algorithm does not exist";
  if (SendsPartialResults(algorithm) && Reduces(call.operation) && IsHalf(call.dtype)) {
    why = "this algorithm would round partial results";
  } else if (algorithm == Algorithm::kTwoLevels && call.operation == Operation::kAllReduce) {
    why = "this algorithm needs several machines, of which at least one runs several ranks";
  }
  return InvalidArgument(Name(call.operation), " of ", Name(call.dtype), " by ", Name(algorithm),
                         " on ", ranks, " ranks: ", why, "; use ", names);
}

std::vector<Algorithm> Candidates(const Call& call, int ranks, const Hosts& hosts) {
  std::vector<Algorithm> found = AlgorithmsFor(call, ranks, hosts);
  if (!Reduces(call.operation)) return found;
  const bool few =
      ranks <= kMostExchangeRanks && call.bytes <= kMostExchangeBytes / std::max(1, ranks - 1);
  std::erase_if(found, [&](Algorithm algorithm) {
    return (algorithm == Algorithm::kExchange && !few) ||
           (algorithm == Algorithm::kDoubling && call.bytes > kMostDoublingBytes);
  });
  return found;
}

double PredictSeconds(const Call& call, int ranks, Algorithm algorithm, const Costs& costs,
                      const Hosts& hosts) {
  if (ranks == 1) return 0;
  if (algorithm == Algorithm::kTwoLevels) return PredictTwoLevels(call, hosts, costs);
  return WorkOf(call, ranks, algorithm, costs).Seconds(costs);
}

bool IsAddedAroundTheRing(const Call& call, int ranks) {
  const bool adds = call.reduction == Reduction::kSum || call.reduction == Reduction::kMean;
  const bool rounds = call.dtype == DType::kFloat32 || call.dtype == DType::kFloat64;
  return call.operation == Operation::kAllReduce && adds && rounds &&
         call.bytes / call.element_bytes >= ranks;
}

Algorithm ChooseAlgorithm(const Call& call, int ranks, const Costs& costs, const Hosts& hosts,
                          SumOrder order) {
  if (order == SumOrder::kRing && IsAddedAroundTheRing(call, ranks)) return Algorithm::kRing;
  const std::vector<Algorithm> candidates = Candidates(call, ranks, hosts);
  return *std::ranges::min_element(candidates, {}, [&](Algorithm algorithm) {
    return PredictSeconds(call, ranks, algorithm, costs, hosts);
  });
}

Plan MakePlan(const Call& call, int rank, int ranks, const Costs& costs, const Hosts& hosts) {
  return MakePlan(call, rank, ranks, costs, ChooseAlgorithm(call, ranks, costs, hosts), hosts);
}

Plan MakePlan(const Call& call, int rank, int ranks, const Costs& costs, Algorithm algorithm,
              const Hosts& hosts) {
  ENFORCE(!hosts.known() || hosts.ranks() == ranks, "the machines of all ranks");
  ENFORCE(rank >= 0 && rank < ranks && call.root >= 0 && call.root < ranks, "ranks of the group");
  ENFORCE(call.bytes >= 0 && call.bytes % call.element_bytes == 0, "whole elements");
  ENFORCE(CheckAlgorithm(call, ranks, algorithm, hosts).ok(),
          "an algorithm that CheckAlgorithm accepts");
  Plan plan{.call = call, .rank = rank, .ranks = ranks, .hosts = hosts, .algorithm = algorithm};
  plan.predicted_s = PredictSeconds(call, ranks, algorithm, costs, hosts);
  if (algorithm == Algorithm::kTwoLevels) {
    const int64_t elements = std::max<int64_t>(1, costs.chunk_bytes / call.element_bytes);
    plan.window_bytes = 2 * elements * call.element_bytes;
  }
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
