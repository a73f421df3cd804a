// Executes a plan on behalf of one rank. Decides which sends and receives may start, and reduces
// values as soon as all operands have arrived. A transport, or the simulation, moves the bytes. An
// execution allocates no memory. Used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collectives/plan/plan.h"

namespace tfjob::collectives {

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
  void Complete(Queue& queue);
  void Finish(int index);
  void Reduce(const Step& step);
  void Prepare();
  void CollectQueues();
  void CollectDependents();

  Plan plan_;
  std::vector<Link> links_;     // by rank
  std::vector<int> order_;      // the steps of all queues
  std::vector<int> waits_for_;  // by step: the number of steps for which it waits at the start
  std::vector<int> first_dependent_, dependents_;  // by step: the steps that wait for it
  std::vector<int> pending_;                       // by step: how many steps it still waits for
  std::vector<int> finished_;                      // complete steps not yet counted in pending_
  std::vector<std::span<const std::byte>> operands_;
  std::span<std::byte> values_, scratch_;
  size_t left_ = 0;
};

}  // namespace tfjob::collectives
