// Describes one rank's part in a collective operation as a value: a list of steps, computed once
// from the call, the number of ranks and a table of costs. The simulation and the transports that
// exchange messages execute the same value (plan_run.h).
//
//   AllReduce(1000 bytes of float32, sum), rank 0 of 2: exchange, predicted 23.4 us
//     rank 1: sends 1000 bytes in 1 frames, receives 1000 bytes in 1 frames
//     0: send values[0, 1000) to 1
//     1: receive scratch[0, 1000) from 1
//     2: values[0, 1000) = sum(values[0, 1000), scratch[0, 1000)), after 0 1
//
// Algorithms of AllReduce, for n ranks and M bytes:
//   exchange  every rank sends all of its values to all others, and adds the values of all ranks in
//             the order of the tree: one round, (n − 1)·M bytes sent per rank.
//   doubling  every rank climbs the tree from its leaf. At each node, the ranks of the left half
//             exchange their values with those of the right half, so both sides know the value of
//             the node. If the right half is smaller, its ranks send to several ranks of the left
//             half. ⌈log₂ n⌉ rounds, and M bytes per round.
//   halving   like doubling, but with half of the remaining values per round, and an all-gather in
//             the reverse order (Rabenseifner's algorithm, which begins at distance 1 here, because
//             this gives the tree). Only for 2ᵏ ranks; 2·log₂ n rounds, 2·M·(n − 1)/n bytes.
//   direct    every rank receives its slice from all others, adds in the order of the tree, and
//             sends the result to all others, in pieces: 2 rounds, 2·M·(n − 1)/n bytes.
// All algorithms produce the same bits. Candidates lists the algorithms for the other operations.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collectives/communicator.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::collectives {

enum class Operation : uint8_t {
  kAllReduce = 1,
  kReduceScatter = 2,
  kAllGather = 3,
  kAllGatherVariable = 4,
  kBroadcast = 5,
  kReduce = 6,
  kAllToAll = 7,
  kBarrier = 8,
  kAllocate = 9,
};
std::string_view Name(Operation operation);  // "AllReduce"; a literal

enum class Algorithm : uint8_t { kExchange, kDoubling, kHalving, kDirect };
std::string_view Name(Algorithm algorithm);  // "exchange"

// Describes an operation. All ranks must pass the same description.
struct Call {
  Operation operation = Operation::kBarrier;
  int64_t bytes = 0;                      // the size of the span or, for kAllocate, of the memory
  int64_t element_bytes = 1;              // slices are counted in elements
  DType dtype = DType::kUInt8;            // for reductions
  Reduction reduction = Reduction::kSum;  // for reductions
  int root = 0;                           // for Broadcast and Reduce
  auto operator<=>(const Call&) const = default;
};
std::string ToString(const Call& call);  // "AllReduce(1000 bytes of float32, sum)"

// The costs, in seconds, and the sizes from which the algorithm is chosen. They must be equal on
// all ranks. The defaults were measured coarsely, over loopback TCP on a machine with two cores.
struct Costs {
  double round = 12e-6;           // α: the time until a round's first byte arrives
  double frame = 2e-6;            // per frame that a rank sends or receives
  double byte = 0.45e-9;          // β: per byte that a rank sends
  double reduced_byte = 0.12e-9;  // per byte that a rank reads to reduce
  int64_t piece_bytes = 256 << 10;
  bool operator==(const Costs&) const = default;
};

// The memory of a range: the caller's span, or the plan's scratch memory.
enum class PlanMemory : uint8_t { kValues, kScratch };
struct PlanRange {
  PlanMemory memory = PlanMemory::kValues;
  int64_t begin = 0;
  int64_t bytes = 0;
  bool operator==(const PlanRange&) const = default;
};

enum class StepKind : uint8_t { kSend, kReceive, kReduce };
// Sends to the same rank take place in step order, and so do receives from the same rank. Apart
// from this order, a step may start as soon as the steps that it waits for are complete.
struct Step {
  StepKind kind = StepKind::kSend;
  int peer = -1;       // the other rank of a send or a receive
  PlanRange range;     // the bytes to send, or the place for received or reduced bytes
  int64_t offset = 0;  // where the bytes start in the call's values; equal on both ranks
  int first_operand = 0,
      operands = 0;                 // a reduction's operands, in Plan::operands, in tree order
  int first_after = 0, afters = 0;  // in Plan::after
};

struct Plan {
  Call call;
  int rank = 0, ranks = 1;
  Algorithm algorithm = Algorithm::kExchange;
  std::vector<Step> steps;
  std::vector<PlanRange> operands;
  std::vector<int> after;  // for each step, the indices of the earlier steps for which it waits
  int64_t scratch_bytes = 0;
  double predicted_s = 0;
  // The plans of different ranks are compatible only if their fingerprints are equal. The
  // fingerprint covers the call, the number of ranks, the algorithm and the size of pieces.
  uint64_t fingerprint = 0;

  std::span<const PlanRange> OperandsOf(const Step& step) const;
  std::span<const int> AfterOf(const Step& step) const;
};

// Returns the algorithms that can execute the call. There is at least one.
std::vector<Algorithm> Candidates(const Call& call, int ranks);
// Returns the candidate with the lowest predicted time.
Algorithm ChooseAlgorithm(const Call& call, int ranks, const Costs& costs);
// Returns the predicted time of the busiest rank.
double PredictSeconds(const Call& call, int ranks, Algorithm algorithm, const Costs& costs);

// Creates the plan of a rank. The call must be valid: whole elements, a root in [0, ranks), and a
// dtype that can be reduced. For kAllGatherVariable, plans the exchange of the sizes.
Plan MakePlan(const Call& call, int rank, int ranks, const Costs& costs);
Plan MakePlan(const Call& call, int rank, int ranks, const Costs& costs, Algorithm algorithm);
// Creates the plan that gathers `sizes[r]` bytes from each rank r and concatenates them. Reuses the
// capacity of `plan`.
void MakeVariableGather(std::span<const size_t> sizes, int rank, Plan& plan);

// Prints one step per line, and the bytes per link.
std::string ToString(const Plan& plan);

}  // namespace tfjob::collectives
