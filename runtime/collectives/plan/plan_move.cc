// Implements the algorithms that move values without reducing them.
#include <bit>
#include <vector>

#include "runtime/collectives/plan/plan_builder.h"

namespace tfjob::collectives {

void AddGather(PlanBuilder& plan) {
  for (int i = 1; i < plan.ranks(); ++i) {
    plan.Send(plan.Peer(i), SliceOf(plan.count(), plan.rank(), plan.ranks()));
  }
  for (int i = 1; i < plan.ranks(); ++i) {
    plan.Receive(plan.Peer(i), SliceOf(plan.count(), plan.Peer(i), plan.ranks()));
  }
}

// Uses a binomial tree. If the ranks are numbered from the root, the number of a rank's parent is
// the rank's own number with the lowest set bit cleared.
void AddBroadcastTree(PlanBuilder& plan) {
  const Slice all{0, plan.count()};
  const auto number =
      static_cast<unsigned>((plan.rank() - plan.root() + plan.ranks()) % plan.ranks());
  const auto rank_of = [&](unsigned other) {
    return (static_cast<int>(other) + plan.root()) % plan.ranks();
  };
  const auto ranks = static_cast<unsigned>(plan.ranks());
  int received = -1;
  if (number != 0) received = plan.Receive(rank_of(number & (number - 1)), all);
  const unsigned lowest = number == 0 ? std::bit_ceil(ranks) : number & -number;
  for (unsigned bit = lowest / 2; bit > 0; bit /= 2) {
    if (number + bit < ranks) plan.Send(rank_of(number + bit), all, {received});
  }
}

// Every rank but the root owns a slice. The root sends each owner its slice, and the owner sends
// the slice to the other owners. The root therefore sends each value only once.
void AddBroadcastSlices(PlanBuilder& plan) {
  const int owners = plan.ranks() - 1, root = plan.root();
  const auto owner_of = [&](int slice) { return (root + 1 + slice) % plan.ranks(); };
  const int pieces = plan.Pieces(SliceOf(plan.count(), 0, owners).count);
  const auto piece_of = [&](int slice, int piece) {
    return PieceOf(SliceOf(plan.count(), slice, owners), piece, pieces);
  };
  const int own = (plan.rank() - root - 1 + plan.ranks()) % plan.ranks();  // unused on the root
  for (int piece = 0; piece < pieces; ++piece) {
    if (plan.rank() == root) {
      for (int slice = 0; slice < owners; ++slice) {
        plan.Send(owner_of(slice), piece_of(slice, piece));
      }
      continue;
    }
    const int received = plan.Receive(root, piece_of(own, piece));
    for (int i = 1; i < owners; ++i) {
      plan.Send(owner_of((own + i) % owners), piece_of(own, piece), {received});
    }
    for (int i = 1; i < owners; ++i) {
      const int slice = (own + i) % owners;
      plan.Receive(owner_of(slice), piece_of(slice, piece));
    }
  }
}

// An arriving piece waits in the scratch memory until the piece that it replaces has been sent.
void AddAllToAll(PlanBuilder& plan) {
  constexpr int kSlots = 2;
  const int others = plan.ranks() - 1;
  const int pieces = plan.Pieces(plan.count() / plan.ranks());
  const auto piece_of = [&](int rank, int piece) {
    return PieceOf(SliceOf(plan.count(), rank, plan.ranks()), piece, pieces);
  };
  const int64_t slot = plan.ReserveScratch(int64_t{kSlots} * others, piece_of(0, 0).count);
  std::vector<std::vector<int>> placed(static_cast<size_t>(plan.ranks()));
  for (int piece = 0; piece < pieces; ++piece) {
    for (int i = 1; i < plan.ranks(); ++i) {
      const int peer = plan.Peer(i);
      const int64_t scratch = (int64_t{piece % kSlots} * others + i - 1) * slot;
      std::vector<int>& before = placed[static_cast<size_t>(peer)];
      const int sent = plan.Send(peer, piece_of(peer, piece));
      const int received =
          plan.ReceiveAside(peer, piece_of(plan.rank(), piece), scratch,
                            {piece < kSlots ? -1 : before[static_cast<size_t>(piece - kSlots)]});
      const std::vector<PlanRange> operand{plan.Scratch(scratch, piece_of(peer, piece))};
      const std::vector<int> after{sent, received};
      before.push_back(plan.Reduce(piece_of(peer, piece), operand, after));
    }
  }
}

// Uses the dissemination algorithm (Hensgen, Finkel, Manber, "Two algorithms for barrier
// synchronization", 1988). After round k, counted from 0, a rank knows that it and the 2^(k + 1) −
// 1 ranks before it have arrived.
void AddBarrier(PlanBuilder& plan) {
  std::vector<int> received;
  for (int distance = 1; distance < plan.ranks(); distance *= 2) {
    plan.Send((plan.rank() + distance) % plan.ranks(), {}, received);
    received.push_back(plan.Receive((plan.rank() - distance + plan.ranks()) % plan.ranks(), {}));
  }
}

}  // namespace tfjob::collectives
