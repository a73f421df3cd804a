// Collects the steps of a plan. Private to this package.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>

#include "runtime/collectives/plan/plan.h"

namespace tfjob::collectives {

class PlanBuilder {
 public:
  PlanBuilder(Plan& plan, const Costs& costs) : plan_(plan), costs_(costs) {}

  // Send, Receive, ReceiveAside and Reduce add a step that waits for the steps `after`, and return
  // the new step's index. An index of −1 in `after` stands for no step.
  int Send(int peer, Slice slice, std::span<const int> after = {});
  int Send(int peer, Slice slice, std::initializer_list<int> after) {
    return Send(peer, slice, std::span(after.begin(), after.size()));
  }
  // Receive puts the slice into its place in the values. ReceiveAside puts the slice into scratch
  // memory.
  int Receive(int peer, Slice slice, std::initializer_list<int> after = {});
  int ReceiveAside(int peer, Slice slice, int64_t scratch, std::initializer_list<int> after);
  // Sets the slice to the reduction of the operands, which must have the slice's size. Set
  // `completes` if the operands are partial results that together include all ranks.
  int Reduce(Slice target, std::span<const PlanRange> operands, std::span<const int> after,
             bool completes = false);

  // Do the same with any range. `offset` is where the bytes start in the call's values.
  int SendRange(int peer, const PlanRange& range, std::span<const int> after);
  int ReceiveRange(int peer, const PlanRange& range, int64_t offset, std::span<const int> after);
  int ReduceRange(const PlanRange& target, std::span<const PlanRange> operands,
                  std::span<const int> after, bool completes = false);

  PlanRange Values(Slice slice) const;
  // Returns a range of the memory that the rank shares with its neighbours.
  PlanRange Shared(int rank, Slice slice) const;
  PlanRange Scratch(int64_t begin, Slice slice) const;
  // Reserves scratch memory for `slots` slots of at most `elements` elements each, and returns a
  // slot's size in bytes.
  int64_t ReserveScratch(int64_t slots, int64_t elements);

  int rank() const { return plan_.rank; }
  int ranks() const { return plan_.ranks; }
  int root() const { return plan_.call.root; }
  const Hosts& hosts() const { return plan_.hosts; }
  // Returns the number of elements of a chunk.
  int64_t chunk() const { return plan_.window_bytes / 2 / plan_.call.element_bytes; }
  // Returns the number of elements of the span.
  int64_t count() const { return plan_.call.bytes / plan_.call.element_bytes; }
  // Returns the i-th rank that this rank serves. The order differs between ranks, so that not all
  // of them start with rank 0.
  int Peer(int i) const { return (plan_.rank + i) % plan_.ranks; }  // i in [1, ranks)
  // Returns how many pieces a slice of `elements` elements is split into.
  int Pieces(int64_t elements) const;

 private:
  int Add(Step step, std::span<const int> after);

  Plan& plan_;
  const Costs& costs_;
};

// Returns piece `piece` of the `pieces` pieces of a slice.
Slice PieceOf(Slice slice, int piece, int pieces);

// Each function adds the steps of its algorithm.
void AddExchange(PlanBuilder& builder);                     // AllReduce
void AddDoubling(PlanBuilder& builder);                     // AllReduce
void AddHalving(PlanBuilder& builder);                      // AllReduce among 2ⁿ ranks
void AddDirect(PlanBuilder& builder, Operation operation);  // AllReduce, ReduceScatter, Reduce
void AddTwoLevels(PlanBuilder& builder);                    // AllReduce
void AddRing(PlanBuilder& builder);                         // AllReduce, in its own order
void AddReduceAtRoot(PlanBuilder& builder);                 // Reduce: the root receives all values
void AddGather(PlanBuilder& builder);                       // AllGather
void AddBroadcastTree(PlanBuilder& builder);  // Broadcast: every rank receives all from its parent
void AddBroadcastSlices(PlanBuilder& builder);  // Broadcast: the ranks pass slices on to each other
void AddAllToAll(PlanBuilder& builder);
void AddBarrier(PlanBuilder& builder);

}  // namespace tfjob::collectives
