// Implements the ring: every rank sends only to the next rank and receives only from the previous
// one.
#include <vector>

#include "runtime/collectives/plan/plan_builder.h"

namespace tfjob::collectives {
namespace {

// The number of pieces in flight: while one piece is being added, the next one arrives.
constexpr int kRingWindow = 2;

// Adds the steps of one rank. There are as many slices as ranks, and slice r ends up complete on
// rank r. In round k of the reduce-scatter, counted from 0, the rank receives the partial sums of
// slice rank − 2 − k (mod n) and adds its own values. In the all-gather, the complete slices travel
// in the same direction. Within a round, a slice travels in pieces.
class Ring {
 public:
  explicit Ring(PlanBuilder& plan)
      : plan_(plan),
        pieces_(plan.Pieces(SliceOf(plan.count(), 0, plan.ranks()).count)),
        next_(Wrap(plan.rank() + 1)),
        previous_(Wrap(plan.rank() - 1)),
        slot_(plan.ReserveScratch(kRingWindow, Piece(0, 0).count)),
        complete_(static_cast<size_t>(pieces_), -1) {}

  void Add() {
    for (int piece = 0; piece < pieces_; ++piece) Send(Wrap(plan_.rank() - 1), piece, -1);
    for (int round = 0; round < plan_.ranks() - 1; ++round) {
      for (int piece = 0; piece < pieces_; ++piece) AddOwn(round, piece);
    }
    for (int piece = 0; piece < pieces_; ++piece) {
      Send(plan_.rank(), piece, complete_[static_cast<size_t>(piece)]);
    }
    for (int round = 0; round < plan_.ranks() - 1; ++round) {
      for (int piece = 0; piece < pieces_; ++piece) PassOn(round, piece);
    }
  }

 private:
  int Wrap(int rank) const { return (rank % plan_.ranks() + plan_.ranks()) % plan_.ranks(); }
  Slice Piece(int slice, int piece) const {
    return PieceOf(SliceOf(plan_.count(), slice, plan_.ranks()), piece, pieces_);
  }

  void Send(int slice, int piece, int after) { plan_.Send(next_, Piece(slice, piece), {after}); }

  // Receives a piece with the partial sums of the ranks before this one, adds this rank's values,
  // and passes the piece on unless it is complete.
  void AddOwn(int round, int piece) {
    const int slice = Wrap(plan_.rank() - 2 - round);
    const Slice part = Piece(slice, piece);
    const int slot = static_cast<int>(added_.size()) % kRingWindow;
    const int before = added_.size() < kRingWindow ? -1 : added_[added_.size() - kRingWindow];
    const int received = plan_.ReceiveAside(previous_, part, slot * slot_, {before});
    const std::vector<PlanRange> operands{plan_.Scratch(slot * slot_, part), plan_.Values(part)};
    const bool last = round == plan_.ranks() - 2;
    const std::vector<int> after{received};
    added_.push_back(plan_.Reduce(part, operands, after, /*completes=*/last));
    if (last) {
      complete_[static_cast<size_t>(piece)] = added_.back();
    } else {
      Send(slice, piece, added_.back());
    }
  }

  // Receives a complete piece in place of this rank's partial sums. The partial sums have been sent
  // by then, because the complete sums include them.
  void PassOn(int round, int piece) {
    const int slice = Wrap(plan_.rank() - 1 - round);
    const int received = plan_.Receive(previous_, Piece(slice, piece));
    if (round < plan_.ranks() - 2) Send(slice, piece, received);
  }

  PlanBuilder& plan_;
  const int pieces_;
  const int next_, previous_;
  const int64_t slot_;
  std::vector<int> added_;     // the reductions, in the order of the receives
  std::vector<int> complete_;  // by piece of this rank's slice: the step after which it is complete
};

}  // namespace

void AddRing(PlanBuilder& plan) {
  Ring(plan).Add();
}

}  // namespace tfjob::collectives
