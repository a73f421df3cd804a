// Executes a plan on behalf of one rank. Decides which sends and receives may start, and reduces
// values as soon as all operands have arrived. A transport, or the simulation, moves the bytes. An
// execution allocates no memory. Used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collectives/plan/plan.h"

namespace tfjob::collectives {

// The values of a rank in memory that its neighbours, the ranks on its machine, can access. If the
// values had to be copied, `bytes` contains only a window of them, in which value i is at i modulo
// `window`.
struct SharedSpan {
  std::span<std::byte> bytes;
  int64_t window = 0;  // 0: `bytes` contains all values
};

// Where the neighbours of a rank find its SharedSpan. The numbers have the same meaning in all
// processes of the machine. They come from a peer, and must be checked.
struct SharedPlace {
  uint64_t allocation = 0;
  uint64_t offset = 0;
  uint64_t window = 0;
};
static_assert(sizeof(SharedPlace) == kPlaceBytes);

class PlanRun {
 public:
  PlanRun() = default;
  explicit PlanRun(Plan plan);
  // Replaces the plan with that of MakeVariableGather. Allocates only if this gather is larger than
  // all earlier gathers.
  void PlanVariableGather(std::span<const size_t> sizes, int rank);

  const Plan& plan() const { return plan_; }

  // Starts an execution. The spans must have the plan's sizes, and must outlive the execution.
  // `scratch` must be aligned to 64 bytes.
  void Start(std::span<std::byte> values, std::span<std::byte> scratch);
  // Starts an execution of a plan in two levels. `own` is this rank's span as its neighbours see
  // it, and `place` is what this rank sends them about it.
  void Start(std::span<std::byte> values, std::span<std::byte> scratch, const SharedSpan& own,
             const SharedPlace& place);
  // When a neighbour's place has been received, and before ReceiveDone is called for it, the caller
  // must find the span and set it.
  const SharedPlace& PlaceOf(int rank) const { return places_[static_cast<size_t>(rank)]; }
  void SetNeighbour(int rank, const SharedSpan& span) { shared_[static_cast<size_t>(rank)] = span; }

  // A send or a receive that is not complete. `number` is the frame's index, counted from 0, among
  // all frames of this execution that travel over the same link in the same direction.
  struct Transfer {
    const Step* step = nullptr;  // null: no transfer may start now
    int number = 0;
  };
  Transfer NextSend(int peer) const { return Next(links_[static_cast<size_t>(peer)].sends); }
  Transfer NextReceive(int peer) const { return Next(links_[static_cast<size_t>(peer)].receives); }
  // Return whether any sends to the rank or receives from it are left.
  bool sends_left(int peer) const { return Left(links_[static_cast<size_t>(peer)].sends); }
  bool receives_left(int peer) const { return Left(links_[static_cast<size_t>(peer)].receives); }

  std::span<std::byte> Bytes(const PlanRange& range) const;
  // Report that the next send to, or receive from, the peer is complete.
  void SendDone(int peer) { Complete(links_[static_cast<size_t>(peer)].sends); }
  void ReceiveDone(int peer) { Complete(links_[static_cast<size_t>(peer)].receives); }
  bool done() const { return left_ == 0; }

 private:
  // The transfers of one direction of a link: indices of steps in order_[begin, end).
  struct Queue {
    int begin = 0, next = 0, end = 0;
  };
  struct Link {
    Queue sends, receives;
  };

  Transfer Next(const Queue& queue) const;
  static bool Left(const Queue& queue) { return queue.next < queue.end; }
  std::span<std::byte> SharedBytes(const PlanRange& range) const;
  void Complete(Queue& queue);
  void FinishAll();
  void Finish(int index);
  void Reduce(const Step& step);
  void Prepare();
  void CollectQueues();
  void CollectDependents();

  Plan plan_;
  std::vector<Link> links_;     // by rank
  std::vector<int> order_;      // the steps of all queues
  std::vector<int> waits_for_;  // by step: the number of steps that it waits for at the start
  std::vector<int> first_dependent_, dependents_;  // by step: the steps that wait for it
  std::vector<int> pending_;                       // by step: how many steps it still waits for
  std::vector<int> finished_;                      // complete steps not yet counted in pending_
  std::vector<std::span<const std::byte>> operands_;
  std::span<std::byte> values_, scratch_;
  std::vector<SharedSpan> shared_;           // by rank
  mutable std::vector<SharedPlace> places_;  // by rank; mutable, like the memory of spans
  size_t left_ = 0;
};

}  // namespace tfjob::collectives
