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
//   exchange  every rank sends all of its values to all others, and sums the values of all ranks in
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
//   two levels  for ranks on several machines (hosts.h). The ranks on a machine share memory. Each
//             of them takes a slice, sums the values of every maximal subtree of the machine, and
//             sends these sums directly to one rank on every other machine, as in `direct`. At the
//             end, it writes the result to the memory of all ranks on its machine. With L ranks on
//             each of H machines, which form one subtree each, a rank sends 2·M/L·(H − 1)/H bytes.
// These algorithms produce the same bits. Candidates lists the algorithms for the other operations.
// Doubling, halving and two levels send partial results. A bfloat16 or a float16 would be rounded
// each time, so such values are reduced only by exchange and direct, in which one rank adds the
// values of all ranks.
//
// One algorithm adds in another order, and is used only if the caller asks for it
// (SumOrder::kRing):
//   ring      every rank receives partial sums from the previous rank, adds its own values, and
//             sends the result to the next rank, in pieces; the complete sums then travel once
//             around the ring. 2·(n − 1) rounds, 2·M·(n − 1)/n bytes, and only two links per rank.
//             The values of slice s are added in the order v(s + 1), v(s + 2), …, v(s), modulo n.
//             All ranks end with equal bits, because one rank completes each sum.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/plan/hosts.h"
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

enum class Algorithm : uint8_t { kExchange, kDoubling, kHalving, kDirect, kTwoLevels, kRing };
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

// Returns InvalidArgument, with a message that says what is wrong, if no ranks could make this
// call: the type cannot be reduced, there is no such root, or the size does not fit.
Status CheckCall(const Call& call, int ranks);

// The costs, in seconds, and the sizes from which the algorithm is chosen. They must be equal on
// all ranks. The defaults were measured coarsely, over loopback TCP on a machine with two cores;
// those of shared memory are estimates.
struct Costs {
  double round = 12e-6;           // α: the time until a round's first byte arrives
  double frame = 2e-6;            // per frame that a rank sends or receives
  double byte = 0.45e-9;          // β: per byte that a rank sends
  double reduced_byte = 0.12e-9;  // per byte that a rank reads to reduce
  // For ranks on one machine that share memory:
  double signal = 8e-6;         // the time until a signal of a neighbour arrives
  double shared_byte = 0.1e-9;  // per byte that a rank reads from, or writes to, a neighbour
  int64_t piece_bytes = 256 << 10;
  int64_t chunk_bytes = 4 << 20;  // the largest part of a span that two levels reduce at once
  bool operator==(const Costs&) const = default;
};

// The memory of a range: the caller's span, the plan's scratch memory or, if the ranks on a machine
// share memory, the span of a rank as its neighbours see it. The latter is the caller's span if
// this span is in shared memory, and otherwise memory to which the span is copied chunk by chunk.
enum class PlanMemory : uint8_t {
  kValues,
  kScratch,
  kShared,
  kPlace,  // the place of a shared span (plan_run.h), which a rank sends to its neighbours
};
struct PlanRange {
  PlanMemory memory = PlanMemory::kValues;
  int64_t begin = 0;  // in kShared, counted in the span, even if only a chunk of it is in memory
  int64_t bytes = 0;
  int rank = -1;  // in kShared and kPlace: whose memory; otherwise −1
  bool operator==(const PlanRange&) const = default;
};
inline constexpr int64_t kPlaceBytes = 24;

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
  bool completes = false;           // whether a reduction includes the values of all ranks
};

struct Plan {
  Call call;
  int rank = 0, ranks = 1;
  Hosts hosts;  // known, or of a group about whose machines nothing is known
  Algorithm algorithm = Algorithm::kExchange;
  std::vector<Step> steps;
  std::vector<PlanRange> operands;
  std::vector<int> after;  // for each step, the indices of the earlier steps that it waits for
  int64_t scratch_bytes = 0;
  int64_t window_bytes = 0;  // two levels: the size of two chunks, which a copied span needs
  double predicted_s = 0;
  // The plans of different ranks are compatible only if their fingerprints are equal. The
  // fingerprint covers the call, the number of ranks, their machines, the algorithm and the sizes
  // of pieces and chunks.
  uint64_t fingerprint = 0;

  std::span<const PlanRange> OperandsOf(const Step& step) const;
  std::span<const int> AfterOf(const Step& step) const;
};

// In all functions, `hosts` is either unknown or describes `ranks` ranks.

// Returns InvalidArgument, with a message that says which algorithms can be used, if the algorithm
// cannot execute the call on these machines, or would round more often than reduction.h allows.
Status CheckAlgorithm(const Call& call, int ranks, Algorithm algorithm, const Hosts& hosts = {});
// Returns the algorithms that CheckAlgorithm accepts, that add in the order of the tree, and whose
// costs are reasonable for a call of this size. There is at least one.
std::vector<Algorithm> Candidates(const Call& call, int ranks, const Hosts& hosts = {});
// Returns the candidate with the lowest predicted time. With SumOrder::kRing, returns the ring for
// every AllReduce whose values it may add (IsAddedAroundTheRing).
Algorithm ChooseAlgorithm(const Call& call, int ranks, const Costs& costs, const Hosts& hosts = {},
                          SumOrder order = SumOrder::kTree);
// Returns whether SumOrder::kRing makes a difference for this call: an AllReduce that computes the
// sum or the mean of at least `ranks` values of type float32 or float64. The sums of integers,
// minima and maxima have the same bits in any order.
bool IsAddedAroundTheRing(const Call& call, int ranks);
// Returns the predicted time of the busiest rank.
double PredictSeconds(const Call& call, int ranks, Algorithm algorithm, const Costs& costs,
                      const Hosts& hosts = {});

// Creates the plan of a rank. The call must be valid: whole elements, a root in [0, ranks), and a
// dtype that can be reduced. CheckAlgorithm must accept the algorithm. For kAllGatherVariable,
// plans the exchange of the sizes.
Plan MakePlan(const Call& call, int rank, int ranks, const Costs& costs, const Hosts& hosts = {});
Plan MakePlan(const Call& call, int rank, int ranks, const Costs& costs, Algorithm algorithm,
              const Hosts& hosts = {});
// Creates the plan that gathers `sizes[r]` bytes from each rank r and concatenates them. Reuses the
// capacity of `plan`.
void MakeVariableGather(std::span<const size_t> sizes, int rank, Plan& plan);

// Prints one step per line, and the bytes per link.
std::string ToString(const Plan& plan);

}  // namespace tfjob::collectives
