// Implements the reduction algorithms. Each operand list is in tree order.
#include <bit>
#include <vector>

#include "runtime/collectives/plan/plan_builder.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {
namespace {

// The number of pieces in flight: while one piece is being reduced, the next one arrives.
constexpr int kWindow = 2;

// Climbs the tree over [begin, end), and returns the step after which the rank's span contains the
// value of the node [begin, end).
int Climb(PlanBuilder& plan, int begin, int end) {
  if (end - begin == 1) return -1;
  const int middle = TreeMiddle(begin, end), rank = plan.rank(), right = end - middle;
  const bool in_left = rank < middle;
  const int below = in_left ? Climb(plan, begin, middle) : Climb(plan, middle, end);
  const Slice all{0, plan.count()};
  std::vector<int> after;
  if (in_left) {
    const int place = rank - begin;
    if (place < right) after.push_back(plan.Send(middle + place, all, {below}));
    after.push_back(plan.ReceiveAside(middle + place % right, all, 0, {below}));
  } else {
    const int first = begin + rank - middle;
    for (int peer = first; peer < middle; peer += right) {
      after.push_back(plan.Send(peer, all, {below}));
    }
    after.push_back(plan.ReceiveAside(first, all, 0, {below}));
  }
  const PlanRange own = plan.Values(all), other = plan.Scratch(0, all);
  const std::vector<PlanRange> operands =
      in_left ? std::vector{own, other} : std::vector{other, own};
  return plan.Reduce(all, operands, after, /*completes=*/end - begin == plan.ranks());
}

// Reduces this rank's slice piece by piece, and passes each piece on once it is reduced.
class Direct {
 public:
  Direct(PlanBuilder& plan, Operation operation)
      : plan_(plan),
        operation_(operation),
        pieces_(plan.Pieces(SliceOf(plan.count(), 0, plan.ranks()).count)),
        slot_(plan.ReserveScratch(int64_t{kWindow} * (plan.ranks() - 1), Piece(0, 0).count)),
        sent_(static_cast<size_t>(plan.ranks())),
        reduced_(static_cast<size_t>(pieces_), -1),
        received_(reduced_.size()) {}

  void Add() {
    for (int piece = 0; piece < std::min(kWindow, pieces_); ++piece) Scatter(piece);
    for (int piece = 0; piece < pieces_; ++piece) {
      Reduce(piece);
      HandOn(piece);
      if (piece + kWindow < pieces_) Scatter(piece + kWindow);
    }
  }

 private:
  Slice Piece(int rank, int piece) const {
    return PieceOf(SliceOf(plan_.count(), rank, plan_.ranks()), piece, pieces_);
  }
  // Returns the offset in the scratch memory of a piece from `peer`.
  int64_t Slot(int peer, int piece) const {
    const int others = plan_.ranks() - 1;
    const int index = peer < plan_.rank() ? peer : peer - 1;
    return (int64_t{piece % kWindow} * others + index) * slot_;
  }

  void Scatter(int piece) {
    const int before = piece < kWindow ? -1 : reduced_[static_cast<size_t>(piece - kWindow)];
    for (int i = 1; i < plan_.ranks(); ++i) {
      const int peer = plan_.Peer(i);
      sent_[static_cast<size_t>(peer)].push_back(plan_.Send(peer, Piece(peer, piece)));
    }
    for (int i = 1; i < plan_.ranks(); ++i) {
      const int peer = plan_.Peer(i);
      received_[static_cast<size_t>(piece)].push_back(
          plan_.ReceiveAside(peer, Piece(plan_.rank(), piece), Slot(peer, piece), {before}));
    }
  }

  void Reduce(int piece) {
    const Slice own = Piece(plan_.rank(), piece);
    std::vector<PlanRange> operands;
    for (int rank = 0; rank < plan_.ranks(); ++rank) {
      operands.push_back(rank == plan_.rank() ? plan_.Values(own)
                                              : plan_.Scratch(Slot(rank, piece), own));
    }
    reduced_[static_cast<size_t>(piece)] =
        plan_.Reduce(own, operands, received_[static_cast<size_t>(piece)]);
  }

  // Sends the piece to all ranks, to the root or to no rank, as the operation requires.
  void HandOn(int piece) {
    if (operation_ == Operation::kReduceScatter) return;
    const bool to_root = operation_ == Operation::kReduce;
    for (int i = 1; i < plan_.ranks(); ++i) {
      const int peer = plan_.Peer(i);
      if (to_root && peer != plan_.root()) continue;
      plan_.Send(peer, Piece(plan_.rank(), piece), {reduced_[static_cast<size_t>(piece)]});
    }
    if (to_root && plan_.rank() != plan_.root()) return;
    for (int i = 1; i < plan_.ranks(); ++i) {
      const int peer = plan_.Peer(i);
      const int sent = sent_[static_cast<size_t>(peer)][static_cast<size_t>(piece)];
      plan_.Receive(peer, Piece(peer, piece), {sent});
    }
  }

  PlanBuilder& plan_;
  const Operation operation_;
  const int pieces_;
  const int64_t slot_;
  std::vector<std::vector<int>> sent_;      // by rank and piece
  std::vector<int> reduced_;                // by piece
  std::vector<std::vector<int>> received_;  // by piece
};

}  // namespace

void AddExchange(PlanBuilder& plan) {
  const Slice all{0, plan.count()};
  const int64_t slot = plan.ReserveScratch(plan.ranks() - 1, all.count);
  std::vector<PlanRange> operands(static_cast<size_t>(plan.ranks()));
  operands[static_cast<size_t>(plan.rank())] = plan.Values(all);
  std::vector<int> after;
  for (int i = 1; i < plan.ranks(); ++i) after.push_back(plan.Send(plan.Peer(i), all));
  for (int i = 1; i < plan.ranks(); ++i) {
    const int64_t scratch = (i - 1) * slot;
    after.push_back(plan.ReceiveAside(plan.Peer(i), all, scratch, {}));
    operands[static_cast<size_t>(plan.Peer(i))] = plan.Scratch(scratch, all);
  }
  plan.Reduce(all, operands, after);
}

void AddReduceAtRoot(PlanBuilder& plan) {
  const Slice all{0, plan.count()};
  if (plan.rank() != plan.root()) {
    plan.Send(plan.root(), all);
    return;
  }
  const int64_t slot = plan.ReserveScratch(plan.ranks() - 1, all.count);
  std::vector<PlanRange> operands(static_cast<size_t>(plan.ranks()));
  operands[static_cast<size_t>(plan.rank())] = plan.Values(all);
  std::vector<int> after;
  for (int i = 1; i < plan.ranks(); ++i) {
    const int64_t scratch = (i - 1) * slot;
    after.push_back(plan.ReceiveAside(plan.Peer(i), all, scratch, {}));
    operands[static_cast<size_t>(plan.Peer(i))] = plan.Scratch(scratch, all);
  }
  plan.Reduce(all, operands, after);
}

void AddDoubling(PlanBuilder& plan) {
  plan.ReserveScratch(1, plan.count());
  Climb(plan, 0, plan.ranks());
}

void AddHalving(PlanBuilder& plan) {
  struct Level {
    int peer;
    Slice kept, given;
    int sent;
  };
  std::vector<Level> levels;
  plan.ReserveScratch(1, SliceOf(plan.count(), 0, 2).count);
  Slice rest{0, plan.count()};
  int last = -1;  // the step after which `rest` is reduced
  for (int distance = 1; distance < plan.ranks(); distance *= 2) {
    const int side = plan.rank() & distance ? 1 : 0;
    const Slice kept = PieceOf(rest, side, 2), given = PieceOf(rest, 1 - side, 2);
    const int peer = plan.rank() ^ distance;
    const int sent = plan.Send(peer, given, {last});
    const int received = plan.ReceiveAside(peer, kept, 0, {last});
    const PlanRange own = plan.Values(kept), other = plan.Scratch(0, kept);
    const std::vector<PlanRange> operands =
        side == 0 ? std::vector{own, other} : std::vector{other, own};
    const std::vector<int> after{received};
    last = plan.Reduce(kept, operands, after, /*completes=*/2 * distance == plan.ranks());
    levels.push_back({peer, kept, given, sent});
    rest = kept;
  }
  std::vector<int> complete{last};  // the steps after which the current level's `kept` is complete
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    plan.Send(level->peer, level->kept, complete);
    complete.push_back(plan.Receive(level->peer, level->given, {level->sent}));
  }
}

void AddDirect(PlanBuilder& plan, Operation operation) {
  Direct(plan, operation).Add();
}

}  // namespace tfjob::collectives
