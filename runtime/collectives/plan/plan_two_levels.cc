// Implements AllReduce in two levels: within each machine through shared memory, and between
// machines over links.
//
// The span is processed in chunks, because a span outside shared memory is copied to a window of
// two chunks. On every machine, the slices of a chunk are dealt out to the machine's ranks. The
// owner of a slice is the only rank that accesses this slice of the machine's spans, from the time
// when all ranks on the machine have announced that their values are ready until it announces that
// the slice is complete. It may therefore use the spans of its neighbours as memory for sums. The
// owners of the same slice on all machines reduce it together, as in AddDirect: each machine has a
// part of the slice, for which it receives the sums of all subtrees, and whose result it sends to
// the others.
#include <array>
#include <vector>

#include "runtime/collectives/plan/plan_builder.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {
namespace {

// The number of pieces in flight, and of chunks in a window.
constexpr size_t kInFlight = 2;

class TwoLevels {
 public:
  explicit TwoLevels(PlanBuilder& plan)
      : plan_(plan),
        hosts_(plan.hosts()),
        machine_(hosts_.MachineOf(plan.rank())),
        subtrees_(MaximalSubtrees(hosts_)),
        slices_(hosts_.MostRanksOnOne()),
        pieces_(plan.Pieces(Part(0, 0, {0, std::min(plan.chunk(), plan.count())}).count)),
        slot_(plan.ReserveScratch(static_cast<int64_t>(kInFlight * subtrees_.size()),
                                  Range(0, 0, 0, {0, std::min(plan.chunk(), plan.count())}).count)),
        touched_(static_cast<size_t>(plan.ranks())) {
    for (auto& arrived : arrived_) arrived.assign(static_cast<size_t>(plan.ranks()), -1);
    for (int slice = 0; slice < slices_; ++slice) {
      if (OwnerOf(machine_, slice) == plan.rank()) own_slices_.push_back(slice);
    }
  }

  void Add() {
    const int64_t chunks = std::max<int64_t>(1, (plan_.count() - 1) / plan_.chunk() + 1);
    Enter(0);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      if (chunk + 1 < chunks) Enter(chunk + 1);
      ReduceChunk(chunk);
      Leave(chunk);
    }
  }

 private:
  // A range that contains the value of a subtree after the steps `after`.
  struct Operand {
    PlanRange range;
    std::vector<int> after;
  };
  // A piece of an owned slice while it is reduced.
  struct Unit {
    int slice = 0, piece = 0;
    Slice chunk;
    std::vector<Operand> sums;           // by subtree, of this machine's part
    std::vector<std::vector<int>> sent;  // by machine: the sends of this machine's sums
  };

  Slice Chunk(int64_t number) const {
    const int64_t begin = number * plan_.chunk();
    return {begin, std::min(plan_.chunk(), plan_.count() - begin)};
  }
  // Returns the part of a slice that a machine reduces.
  Slice Part(int slice, int machine, Slice chunk) const {
    return PieceOf(PieceOf(chunk, slice, slices_), machine, hosts_.machines());
  }
  Slice Range(int slice, int piece, int machine, Slice chunk) const {
    return PieceOf(Part(slice, machine, chunk), piece, pieces_);
  }
  Slice Range(const Unit& unit, int machine) const {
    return Range(unit.slice, unit.piece, machine, unit.chunk);
  }
  int OwnerOf(int machine, int slice) const {
    const std::vector<int>& ranks = hosts_.RanksOn(machine);
    return ranks[static_cast<size_t>(slice) * ranks.size() / static_cast<size_t>(slices_)];
  }
  // Returns the i-th machine that this rank serves. Each machine has a different order.
  int Machine(int i) const { return (machine_ + i) % hosts_.machines(); }  // i in [1, machines)
  template <typename F>
  void ForNeighbours(F f) const {
    for (const int rank : hosts_.RanksOn(machine_)) {
      if (rank != plan_.rank()) f(rank);
    }
  }
  std::vector<int>& Arrived(int64_t chunk) {
    return arrived_[static_cast<size_t>(chunk) % kInFlight];
  }
  std::vector<int>& Over(int64_t chunk) { return over_[static_cast<size_t>(chunk) % kInFlight]; }

  // Signals to the neighbours that this rank's values are ready.
  void Enter(int64_t chunk) {
    if (hosts_.RanksOn(machine_).size() == 1) return;
    std::vector<int>& arrived = Arrived(chunk);
    const std::vector<PlanRange> values{plan_.Values(Chunk(chunk))};
    const int own =
        plan_.ReduceRange(plan_.Shared(plan_.rank(), Chunk(chunk)), values, Over(chunk));
    arrived[static_cast<size_t>(plan_.rank())] = own;
    ForNeighbours([&](int rank) { Signal(rank, chunk == 0, std::vector{own}); });
    ForNeighbours(
        [&](int rank) { arrived[static_cast<size_t>(rank)] = AwaitSignal(rank, chunk == 0); });
  }

  // A signal is an empty frame. The first one contains the sender's place.
  PlanRange SignalRange(int rank, bool first) const {
    if (!first) return plan_.Shared(rank, {});
    return {.memory = PlanMemory::kPlace, .bytes = kPlaceBytes, .rank = rank};
  }
  void Signal(int peer, bool first, const std::vector<int>& after) {
    plan_.SendRange(peer, SignalRange(plan_.rank(), first), after);
  }
  int AwaitSignal(int peer, bool first) {
    return plan_.ReceiveRange(peer, SignalRange(peer, first), 0, {});
  }

  void ReduceChunk(int64_t chunk) {
    arrived_now_ = &Arrived(chunk);
    std::vector<Unit> units;
    for (const int slice : own_slices_) {
      for (int piece = 0; piece < pieces_; ++piece) {
        units.push_back(
            {.slice = slice, .piece = piece, .chunk = Chunk(chunk), .sums = {}, .sent = {}});
      }
    }
    for (size_t i = 0; i < std::min(kInFlight, units.size()); ++i) Scatter(units[i], i);
    for (size_t i = 0; i < units.size(); ++i) {
      HandOn(units[i], Reduce(units[i], i));
      if (i + kInFlight < units.size()) Scatter(units[i + kInFlight], i + kInFlight);
    }
  }

  // Sums the values of a subtree of this machine.
  Operand SumOf(const Subtree& subtree, Slice range) {
    std::vector<PlanRange> operands;
    std::vector<int> after;
    for (int rank = subtree.begin; rank < subtree.end; ++rank) {
      operands.push_back(plan_.Shared(rank, range));
      after.push_back((*arrived_now_)[static_cast<size_t>(rank)]);
    }
    if (operands.size() == 1) return {operands[0], after};
    const bool own = subtree.begin <= plan_.rank() && plan_.rank() < subtree.end;
    const PlanRange target = plan_.Shared(own ? plan_.rank() : subtree.begin, range);
    return {target, {plan_.ReduceRange(target, operands, after)}};
  }

  // Sends the sums of this machine's subtrees to the other machines, and receives theirs.
  void Scatter(Unit& unit, size_t index) {
    unit.sums.resize(subtrees_.size());
    unit.sent.resize(static_cast<size_t>(hosts_.machines()));
    for (int i = 1; i < hosts_.machines(); ++i) {
      const int machine = Machine(i);
      for (const Subtree& subtree : subtrees_) {
        if (subtree.machine != machine_) continue;
        const Operand sum = SumOf(subtree, Range(unit, machine));
        unit.sent[static_cast<size_t>(machine)].push_back(
            plan_.SendRange(OwnerOf(machine, unit.slice), sum.range, sum.after));
      }
    }
    const Slice own = Range(unit, machine_);
    for (size_t i = 0; i < subtrees_.size(); ++i) {
      if (subtrees_[i].machine == machine_) unit.sums[i] = SumOf(subtrees_[i], own);
    }
    for (int i = 1; i < hosts_.machines(); ++i) ReceiveSums(unit, index, Machine(i), own);
  }

  void ReceiveSums(Unit& unit, size_t index, int machine, Slice range) {
    for (size_t i = 0; i < subtrees_.size(); ++i) {
      if (subtrees_[i].machine != machine) continue;
      const auto slot = static_cast<int64_t>(index % kInFlight * subtrees_.size() + i) * slot_;
      const int received = plan_.ReceiveAside(OwnerOf(machine, unit.slice), range, slot,
                                              {reduced_[index % kInFlight]});
      unit.sums[i] = {plan_.Scratch(slot, range), {received}};
    }
  }

  // Returns the step after which this rank's span contains the result for this machine's part.
  int Reduce(const Unit& unit, size_t index) {
    const PlanRange target = plan_.Shared(plan_.rank(), Range(unit, machine_));
    return reduced_[index % kInFlight] =
               Combine(OperandsOf(unit, 0, plan_.ranks()), target, /*completes=*/true).after[0];
  }

  Operand Combine(const std::vector<Operand>& operands, const PlanRange& target,
                  bool completes = false) {
    if (operands.size() == 1) return operands[0];
    std::vector<PlanRange> ranges;
    std::vector<int> after;
    for (const Operand& operand : operands) {
      ranges.push_back(operand.range);
      after.insert(after.end(), operand.after.begin(), operand.after.end());
    }
    return {target, {plan_.ReduceRange(target, ranges, after, completes)}};
  }

  // Returns operands whose tree, in the order of reduction.h, has the value of the node
  // [begin, end). If the operands of the node's halves do not have such a tree, adds them first.
  std::vector<Operand> OperandsOf(const Unit& unit, int begin, int end) {
    for (size_t i = 0; i < subtrees_.size(); ++i) {
      if (subtrees_[i].begin == begin && subtrees_[i].end == end) return {unit.sums[i]};
    }
    const int middle = TreeMiddle(begin, end);
    std::vector<Operand> left = OperandsOf(unit, begin, middle);
    std::vector<Operand> right = OperandsOf(unit, middle, end);
    const auto joins = [&] {
      const auto count = static_cast<int>(left.size());
      return TreeMiddle(0, count + static_cast<int>(right.size())) == count;
    };
    for (std::vector<Operand>* half : {&left, &right}) {
      if (!joins()) *half = {Combine(*half, half->front().range)};
    }
    left.insert(left.end(), right.begin(), right.end());
    return left;
  }

  // Exchanges the results with the other machines, and writes them to the neighbours' spans.
  void HandOn(const Unit& unit, int reduced) {
    const PlanRange own = plan_.Shared(plan_.rank(), Range(unit, machine_));
    for (int i = 1; i < hosts_.machines(); ++i) {
      const int peer = OwnerOf(Machine(i), unit.slice);
      written_.push_back(plan_.SendRange(peer, own, std::vector{reduced}));
    }
    Spread(own, reduced);
    for (int i = 1; i < hosts_.machines(); ++i) {
      const int machine = Machine(i);
      const PlanRange range = plan_.Shared(plan_.rank(), Range(unit, machine));
      Spread(range, plan_.ReceiveRange(OwnerOf(machine, unit.slice), range, range.begin,
                                       unit.sent[static_cast<size_t>(machine)]));
    }
  }

  void Spread(const PlanRange& range, int complete) {
    written_.push_back(complete);
    const std::vector<PlanRange> source{range};
    ForNeighbours([&](int rank) {
      PlanRange target = range;
      target.rank = rank;
      touched_[static_cast<size_t>(rank)].push_back(
          plan_.ReduceRange(target, source, std::vector{complete}));
    });
  }

  // Signals to the neighbours that this rank's slices are complete, and waits until theirs are.
  void Leave(int64_t chunk) {
    std::vector<int> over = std::exchange(written_, {});
    if (hosts_.RanksOn(machine_).size() == 1) return;
    ForNeighbours([&](int rank) {
      Signal(rank, false, std::exchange(touched_[static_cast<size_t>(rank)], {}));
    });
    ForNeighbours([&](int rank) { over.push_back(AwaitSignal(rank, false)); });
    const std::vector<PlanRange> shared{plan_.Shared(plan_.rank(), Chunk(chunk))};
    Over(chunk) = {plan_.ReduceRange(plan_.Values(Chunk(chunk)), shared, over)};
  }

  PlanBuilder& plan_;
  const Hosts& hosts_;
  const int machine_;
  const std::vector<Subtree> subtrees_;
  const int slices_;
  const int pieces_;
  const int64_t slot_;
  std::vector<int> own_slices_;
  // The steps after which the ranks on this machine are ready, by chunk and rank.
  std::array<std::vector<int>, kInFlight> arrived_;
  const std::vector<int>* arrived_now_ = nullptr;
  // The steps after which a chunk's memory may be used for another chunk.
  std::array<std::vector<int>, kInFlight> over_;
  std::array<int, kInFlight> reduced_{-1, -1};  // the last reductions that used a slot
  std::vector<std::vector<int>> touched_;       // by rank: the writes to its span
  std::vector<int> written_;                    // the last steps that use this rank's own span
};

}  // namespace

void AddTwoLevels(PlanBuilder& plan) {
  TwoLevels(plan).Add();
}

}  // namespace tfjob::collectives
