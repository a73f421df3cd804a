// Executes the plans of all ranks together, in thousands of random cases. Operations, sizes, types,
// numbers of ranks, their machines and algorithms are random. Spans of ranks that share memory are
// in it or are copied to it. The links transfer frames in a random order, and buffer random numbers
// of frames. A link without a buffer transfers a frame only when both ends are ready, which is the
// strictest test for deadlocks. In other cases, a rank dies between two frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/collectives/plan/plan_run.h"
#include "runtime/tensor/half.h"
#include "tests/sanitized.h"

namespace tfjob::collectives {
namespace {

using Bytes = std::vector<std::byte>;

// One rank: its plan and its memory.
struct SimulatedRank {
  PlanRun run;
  Bytes values, scratch;
  // The memory to which the values are copied for the rank's neighbours. Empty if the neighbours
  // can access the values themselves.
  Bytes window;
  bool ended = false;  // has died, or has failed because it needs a rank that has died or failed
};

// The death of a rank, after a given number of frames has been sent. Its frames that have not been
// received may be lost.
struct Death {
  size_t rank = 0;
  int64_t after_frames = 0;
};

struct Frame {
  int number;
  int64_t offset;
  Bytes bytes;
};

SharedSpan SharedSpanOf(SimulatedRank& rank) {
  if (rank.window.empty()) return {.bytes = rank.values};
  return {.bytes = rank.window, .window = static_cast<int64_t>(rank.window.size())};
}

class Simulation {
 public:
  Simulation(std::vector<SimulatedRank>& ranks, PhiloxStream& random,
             std::optional<Death> death = std::nullopt)
      : ranks_(ranks),
        random_(random),
        death_(death),
        count_(ranks.size()),
        buffers_(count_ * count_) {
    for (SimulatedRank& rank : ranks) {
      rank.run.Start(rank.values, rank.scratch, SharedSpanOf(rank), {});
    }
    for (size_t link = 0; link < buffers_.size(); ++link) links_.push_back(link);
    capacity_ = random_.Next() % 3;
  }

  // Runs until every rank is done, has died or has failed. Returns false if ranks wait for each
  // other, or if a frame is left although no rank has died.
  bool Run() {
    while (true) {
      bool moved = Fail();
      for (size_t i = links_.size() - 1; i > 0; --i) {
        std::swap(links_[i], links_[random_.Below(static_cast<uint32_t>(i) + 1)]);
      }
      for (const size_t link : links_) {
        if (random_.Next() % 4 == 0) continue;
        moved |= Move(link / count_, link % count_);
      }
      const auto over = [](const SimulatedRank& rank) { return rank.ended || rank.run.done(); };
      if (std::ranges::all_of(ranks_, over)) return death_ || Empty();
      if (!moved && !Settle()) return false;
    }
  }

  int64_t frames() const { return frames_; }  // that have been sent

 private:
  // Makes the rank die at the planned time. Makes every rank fail that needs an ended rank, as
  // SocketOperations does. Returns whether any rank has ended.
  bool Fail() {
    if (!death_) return false;
    bool some = false;
    if (frames_ >= death_->after_frames && !std::exchange(ranks_[death_->rank].ended, true)) {
      some = true;
      for (size_t to = 0; to < count_; ++to) LoseFrames(buffers_[death_->rank * count_ + to]);
    }
    for (size_t rank = 0; rank < count_; ++rank) {
      if (ranks_[rank].ended || ranks_[rank].run.done() || !NeedsEnded(rank)) continue;
      ranks_[rank].ended = some = true;
    }
    return some;
  }

  void LoseFrames(std::deque<Frame>& buffer) {
    while (!buffer.empty() && random_.Next() % 2 == 0) buffer.pop_back();
  }

  bool NeedsEnded(size_t rank) const {
    const PlanRun& run = ranks_[rank].run;
    for (size_t other = 0; other < count_; ++other) {
      const auto peer = static_cast<int>(other);
      if (!ranks_[other].ended) continue;
      const bool arrived = !buffers_[other * count_ + rank].empty();
      if (run.sends_left(peer) || (run.receives_left(peer) && !arrived)) return true;
    }
    return false;
  }

  // Tries every link once.
  bool Settle() {
    bool moved = false;
    for (const size_t link : links_) moved |= Move(link / count_, link % count_);
    return moved;
  }

  bool Empty() const {
    return std::ranges::all_of(buffers_, [](const auto& buffer) { return buffer.empty(); });
  }

  bool Move(size_t from, size_t to) {
    std::deque<Frame>& buffer = buffers_[from * count_ + to];
    SimulatedRank& sender = ranks_[from];
    SimulatedRank& receiver = ranks_[to];
    if (receiver.ended) return false;
    const auto peer = static_cast<int>(from), target = static_cast<int>(to);
    const PlanRun::Transfer send = sender.ended ? PlanRun::Transfer{} : sender.run.NextSend(target);
    const PlanRun::Transfer receive = receiver.run.NextReceive(peer);
    const bool direct = capacity_ == 0 && send.step != nullptr && receive.step != nullptr;
    const bool stored = send.step != nullptr && buffer.size() < capacity_;
    if (direct || stored) {
      const std::span<std::byte> bytes = sender.run.Bytes(send.step->range);
      buffer.push_back({send.number, send.step->offset, {bytes.begin(), bytes.end()}});
      sender.run.SendDone(target);
      ++frames_;
    }
    if (buffer.empty() || receive.step == nullptr) return stored;
    const Frame frame = std::move(buffer.front());
    buffer.pop_front();
    EXPECT_EQ(frame.number, receive.number);
    EXPECT_EQ(frame.offset, receive.step->offset);
    const std::span<std::byte> place = receiver.run.Bytes(receive.step->range);
    EXPECT_EQ(frame.bytes.size(), place.size());
    std::ranges::copy(frame.bytes, place.begin());
    // Until its place has arrived, a plan must not access a neighbour's memory.
    if (receive.step->range.memory == PlanMemory::kPlace) {
      receiver.run.SetNeighbour(peer, SharedSpanOf(sender));
    }
    receiver.run.ReceiveDone(peer);
    return true;
  }

  std::vector<SimulatedRank>& ranks_;
  PhiloxStream& random_;
  const std::optional<Death> death_;
  const size_t count_;
  std::vector<std::deque<Frame>> buffers_;
  std::vector<size_t> links_;
  size_t capacity_ = 0;
  int64_t frames_ = 0;
};

template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    T sum;
    (void)__builtin_add_overflow(a, b, &sum);
    return sum;
  } else {
    return a + b;
  }
}

// A mean is divided later.
template <typename T>
T Combined(Reduction reduction, T left, T right) {
  if (reduction == Reduction::kMinimum) return std::min(left, right);
  return reduction == Reduction::kMaximum ? std::max(left, right) : Plus(left, right);
}

// The type in which values of type T are added.
template <typename T>
using WideOf = std::conditional_t<sizeof(T) == 2, float, T>;

template <typename T>
WideOf<T> TreeOf(const std::vector<SimulatedRank>& ranks, size_t first, size_t last, size_t at,
                 Reduction reduction) {
  if (last - first == 1) {
    T value;
    std::memcpy(&value, ranks[first].values.data() + at * sizeof(T), sizeof(T));
    return static_cast<WideOf<T>>(value);
  }
  size_t half = 1;
  while (2 * half < last - first) half *= 2;
  return Combined(reduction, TreeOf<T>(ranks, first, first + half, at, reduction),
                  TreeOf<T>(ranks, first + half, last, at, reduction));
}

// The order of the ring: the values of slice s are added from rank s + 1 on.
template <typename T>
WideOf<T> RingOf(const std::vector<SimulatedRank>& ranks, size_t at, Reduction reduction) {
  const auto n = static_cast<int>(ranks.size());
  const auto count = static_cast<int64_t>(ranks[0].values.size() / sizeof(T));
  int slice = 0;
  while (static_cast<int64_t>(at) >= SliceOf(count, slice + 1, n).begin) ++slice;
  const auto value_of = [&](int rank) {
    const auto r = static_cast<size_t>(rank % n);
    return TreeOf<T>(ranks, r, r + 1, at, reduction);
  };
  WideOf<T> value = value_of(slice + 1);
  for (int i = 2; i <= n; ++i) value = Combined(reduction, value, value_of(slice + i));
  return value;
}

// Returns the reduction of each element over the ranks, in the order of the algorithm, rounded once
// to its type.
template <typename T>
Bytes SumsOf(const std::vector<SimulatedRank>& ranks, Reduction reduction, Algorithm algorithm) {
  Bytes sums(ranks[0].values.size());
  for (size_t i = 0; i < sums.size() / sizeof(T); ++i) {
    WideOf<T> value = algorithm == Algorithm::kRing
                          ? RingOf<T>(ranks, i, reduction)
                          : TreeOf<T>(ranks, 0, ranks.size(), i, reduction);
    if (reduction == Reduction::kMean) value /= static_cast<WideOf<T>>(ranks.size());
    const T sum = static_cast<T>(value);
    std::memcpy(sums.data() + i * sizeof(T), &sum, sizeof(T));
  }
  return sums;
}

Bytes ReductionOf(const std::vector<SimulatedRank>& ranks, const Call& call, Algorithm algorithm) {
  const Reduction reduction = call.reduction;
  if (call.dtype == DType::kFloat32) return SumsOf<float>(ranks, reduction, algorithm);
  if (call.dtype == DType::kFloat64) return SumsOf<double>(ranks, reduction, algorithm);
  if (call.dtype == DType::kBFloat16) return SumsOf<BFloat16>(ranks, reduction, algorithm);
  if (call.dtype == DType::kFloat16) return SumsOf<Float16>(ranks, reduction, algorithm);
  if (call.dtype == DType::kInt32) return SumsOf<int32_t>(ranks, reduction, algorithm);
  return SumsOf<int64_t>(ranks, reduction, algorithm);
}

// The magnitudes differ by up to 2^29. Those of float16 differ less, so that no sum overflows.
template <typename T>
void FillWith(Bytes& bytes, PhiloxStream& random) {
  constexpr uint32_t kMagnitudes = std::is_same_v<T, Float16> ? 12 : 30;
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    const T value = static_cast<T>(static_cast<WideOf<T>>(
        std::ldexp(random.Uniform() - 0.5, static_cast<int>(random.Next() % kMagnitudes))));
    std::memcpy(bytes.data() + i, &value, sizeof(T));
  }
}

void Fill(Bytes& bytes, DType dtype, PhiloxStream& random) {
  if (dtype == DType::kFloat32) return FillWith<float>(bytes, random);
  if (dtype == DType::kFloat64) return FillWith<double>(bytes, random);
  if (dtype == DType::kBFloat16) return FillWith<BFloat16>(bytes, random);
  if (dtype == DType::kFloat16) return FillWith<Float16>(bytes, random);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
}

struct Case {
  Call call;
  int ranks;
  Costs costs;
  Hosts hosts;
  Algorithm algorithm;
};

// Spreads the ranks over up to five machines: each rank at random, or in runs of random lengths.
// Sometimes, nothing is known about the machines.
Hosts RandomHosts(int ranks, PhiloxStream& random) {
  if (random.Next() % 4 == 0) return {};
  const uint32_t machines = 1 + random.Below(5);
  const uint32_t longest = 1 + random.Below(6);
  std::vector<int> machine_of;
  while (static_cast<int>(machine_of.size()) < ranks) {
    const auto machine = static_cast<int>(random.Below(machines));
    machine_of.insert(machine_of.end(), 1 + random.Below(longest), machine);
  }
  machine_of.resize(static_cast<size_t>(ranks));
  return Hosts(machine_of);
}

// Returns one of the algorithms that the call allows, with any order of the additions.
Algorithm RandomAlgorithm(const Case& c, PhiloxStream& random) {
  std::vector<Algorithm> algorithms = Candidates(c.call, c.ranks, c.hosts);
  if (algorithms.back() == Algorithm::kTwoLevels && random.Next() % 4 != 0) {
    return Algorithm::kTwoLevels;
  }
  if (CheckAlgorithm(c.call, c.ranks, Algorithm::kRing).ok())
    algorithms.push_back(Algorithm::kRing);
  return algorithms[random.Below(static_cast<uint32_t>(algorithms.size()))];
}

Case RandomCase(PhiloxStream& random) {
  constexpr Operation kOperations[] = {Operation::kAllReduce,     Operation::kAllReduce,
                                       Operation::kReduceScatter, Operation::kAllGather,
                                       Operation::kBroadcast,     Operation::kReduce,
                                       Operation::kAllToAll,      Operation::kBarrier};
  constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64,  DType::kInt32,
                              DType::kInt64,   DType::kBFloat16, DType::kFloat16};
  Case result;
  result.ranks = 1 + static_cast<int>(random.Below(17));
  Call& call = result.call;
  call.operation = kOperations[random.Below(std::size(kOperations))];
  call.dtype = kTypes[random.Below(std::size(kTypes))];
  const bool integer = call.dtype == DType::kInt32 || call.dtype == DType::kInt64;
  call.reduction = static_cast<Reduction>(random.Below(integer ? 3 : 4));
  call.root = static_cast<int>(random.Below(static_cast<uint32_t>(result.ranks)));
  call.element_bytes = static_cast<int64_t>(SizeOf(call.dtype));
  int64_t elements = random.Below(random.Next() % 8 == 0 ? 400 : 60);
  if (call.operation == Operation::kAllToAll) elements -= elements % result.ranks;
  if (call.operation == Operation::kBarrier) elements = 0;
  call.bytes = elements * call.element_bytes;
  result.costs.piece_bytes = 1 + random.Below(200);
  result.costs.chunk_bytes = 8 * (1 + random.Below(random.Next() % 2 == 0 ? 20 : 200));
  result.hosts = RandomHosts(result.ranks, random);
  result.algorithm = RandomAlgorithm(result, random);
  return result;
}

std::vector<SimulatedRank> MakeRanks(const Case& c, PhiloxStream& random) {
  std::vector<SimulatedRank> ranks;
  for (int rank = 0; rank < c.ranks; ++rank) {
    Plan plan = MakePlan(c.call, rank, c.ranks, c.costs, c.algorithm, c.hosts);
    const auto scratch = static_cast<size_t>(plan.scratch_bytes);
    const bool has_neighbours =
        c.hosts.known() && c.hosts.RanksOn(c.hosts.MachineOf(rank)).size() > 1;
    const bool copied = has_neighbours && random.Next() % 2 == 0;
    const auto window = copied ? static_cast<size_t>(plan.window_bytes) : 0;
    ranks.push_back({PlanRun(std::move(plan)), Bytes(static_cast<size_t>(c.call.bytes)),
                     Bytes(scratch, std::byte{0xEE}), Bytes(window, std::byte{0xDD})});
    Fill(ranks.back().values, c.call.dtype, random);
  }
  return ranks;
}

// Concatenates slice r of from[r] for all ranks r.
Bytes SlicesOf(const std::vector<Bytes>& from, const Call& call) {
  Bytes all;
  const int64_t count = call.bytes / call.element_bytes;
  for (size_t rank = 0; rank < from.size(); ++rank) {
    const Slice slice = SliceOf(count, static_cast<int>(rank), static_cast<int>(from.size()));
    const auto begin = from[rank].begin() + slice.begin * call.element_bytes;
    all.insert(all.end(), begin, begin + slice.count * call.element_bytes);
  }
  return all;
}

// Computes the values or the slice of values that a rank must have after the operation.
class Expectation {
 public:
  Expectation(const std::vector<SimulatedRank>& ranks, const Case& c)
      : call_(c.call), reduced_(ReductionOf(ranks, c.call, c.algorithm)) {
    for (const SimulatedRank& rank : ranks) before_.push_back(rank.values);
    gathered_ = SlicesOf(before_, call_);
  }

  // Checks the ranks that are done.
  void Check(const std::vector<SimulatedRank>& ranks) const {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (!ranks[rank].run.done()) continue;
      const bool root = static_cast<int>(rank) == call_.root;
      if (call_.operation == Operation::kReduce && !root) continue;
      if (call_.operation == Operation::kReduceScatter) {
        CheckSlice(ranks[rank].values, rank);
      } else {
        EXPECT_EQ(ranks[rank].values, Of(rank)) << "rank " << rank;
      }
    }
  }

 private:
  Bytes Of(size_t rank) const {
    switch (call_.operation) {
      case Operation::kAllGather:
        return gathered_;
      case Operation::kBroadcast:
        return before_[static_cast<size_t>(call_.root)];
      case Operation::kAllToAll:
        return Exchanged(rank);
      default:
        return reduced_;
    }
  }
  Bytes Exchanged(size_t rank) const {
    Bytes all;
    const auto size = static_cast<ptrdiff_t>(before_[0].size() / before_.size());
    for (const Bytes& values : before_) {
      const auto begin = values.begin() + size * static_cast<ptrdiff_t>(rank);
      all.insert(all.end(), begin, begin + size);
    }
    return all;
  }
  void CheckSlice(const Bytes& values, size_t rank) const {
    const Slice slice = SliceOf(call_.bytes / call_.element_bytes, static_cast<int>(rank),
                                static_cast<int>(before_.size()));
    const auto begin = static_cast<size_t>(slice.begin * call_.element_bytes);
    const auto size = static_cast<size_t>(slice.count * call_.element_bytes);
    EXPECT_TRUE(
        std::equal(values.begin() + begin, values.begin() + begin + size, reduced_.begin() + begin))
        << "rank " << rank;
  }

  const Call& call_;
  const Bytes reduced_;
  std::vector<Bytes> before_;
  Bytes gathered_;
};

TEST(PlanSimulation, EveryPlanGivesTheBitsOfItsOrderAndEnds) {
  const int cases = kSanitized ? 500 : 10'000;
  int two_levels = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    PhiloxStream random(PhiloxKey(static_cast<uint64_t>(seed), "plans"));
    const Case c = RandomCase(random);
    SCOPED_TRACE(StrCat("seed ", seed, ": ", ToString(c.call), " on ", c.ranks, " ranks, ",
                        Name(c.algorithm), ", pieces of ", c.costs.piece_bytes,
                        " bytes, chunks of ", c.costs.chunk_bytes, ", ", ToString(c.hosts)));
    if (c.algorithm == Algorithm::kTwoLevels) ++two_levels;
    std::vector<SimulatedRank> ranks = MakeRanks(c, random);
    const Expectation expected(ranks, c);
    ASSERT_TRUE(Simulation(ranks, random).Run()) << "the ranks wait for each other";
    expected.Check(ranks);
    for (const SimulatedRank& rank : ranks) {
      EXPECT_EQ(rank.run.plan().fingerprint, ranks[0].run.plan().fingerprint);
    }
  }
  EXPECT_GT(two_levels, cases / 20);
}

// If a rank's operation succeeds although another rank dies, the result is complete. No rank waits
// forever.
TEST(PlanSimulation, ADeathBetweenAnyTwoFramesEndsEveryRank) {
  const int cases = kSanitized ? 30 : 300;
  int64_t done = 0, failed = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    PhiloxStream random(PhiloxKey(static_cast<uint64_t>(seed), "deaths"));
    Case c = RandomCase(random);
    c.ranks = 2 + c.ranks % 6;
    c.call.root %= c.ranks;
    c.call.bytes -= c.call.bytes % (c.call.element_bytes * c.ranks);
    c.hosts = RandomHosts(c.ranks, random);
    c.algorithm = RandomAlgorithm(c, random);
    std::vector<SimulatedRank> fresh = MakeRanks(c, random);
    const Expectation expected(fresh, c);
    std::vector<SimulatedRank> undisturbed = fresh;
    Simulation whole(undisturbed, random);
    ASSERT_TRUE(whole.Run());
    for (int64_t frame = 0; frame <= whole.frames(); ++frame) {
      const Death death{random.Below(static_cast<uint32_t>(c.ranks)), frame};
      SCOPED_TRACE(StrCat("seed ", seed, ": ", ToString(c.call), " on ", c.ranks, " ranks, ",
                          Name(c.algorithm), ", ", ToString(c.hosts), "; rank ", death.rank,
                          " dies after ", frame, " frames"));
      std::vector<SimulatedRank> ranks = fresh;
      ASSERT_TRUE(Simulation(ranks, random, death).Run()) << "the ranks wait for each other";
      expected.Check(ranks);
      for (const SimulatedRank& rank : ranks) ++(rank.run.done() ? done : failed);
    }
  }
  EXPECT_GT(done, cases);
  EXPECT_GT(failed, cases);
}

TEST(PlanSimulation, GathersDifferentSizes) {
  for (int seed = 0; seed < 200; ++seed) {
    PhiloxStream random(PhiloxKey(static_cast<uint64_t>(seed), "sizes"));
    std::vector<size_t> sizes(1 + random.Below(9));
    for (size_t& size : sizes) size = random.Next() % 3 == 0 ? 0 : random.Below(100);
    const size_t total = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
    Bytes expected(total);
    for (std::byte& byte : expected) byte = static_cast<std::byte>(random.Next());
    std::vector<SimulatedRank> ranks(sizes.size());
    size_t begin = 0;
    for (size_t rank = 0; rank < sizes.size(); ++rank) {
      ranks[rank].run.PlanVariableGather(sizes, static_cast<int>(rank));
      ranks[rank].values.resize(total);
      std::copy_n(expected.begin() + static_cast<ptrdiff_t>(begin), sizes[rank],
                  ranks[rank].values.begin() + static_cast<ptrdiff_t>(begin));
      begin += sizes[rank];
    }
    ASSERT_TRUE(Simulation(ranks, random).Run());
    for (const SimulatedRank& rank : ranks) EXPECT_EQ(rank.values, expected);
  }
}

}  // namespace
}  // namespace tfjob::collectives
