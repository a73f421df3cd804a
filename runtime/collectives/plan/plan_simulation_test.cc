// Executes the plans of all ranks together, in thousands of random cases. Operations, sizes, types,
// numbers of ranks and algorithms are random. The links transfer frames in a random order, and
// buffer random numbers of frames. A link without a buffer transfers a frame only when both ends
// are ready, which is the strictest test for deadlocks. In other cases, a rank dies between two
// frames.
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
#include "tests/sanitized.h"

namespace tfjob::collectives {
namespace {

using Bytes = std::vector<std::byte>;

// One rank: its plan and its memory.
struct SimulatedRank {
  PlanRun run;
  Bytes values, scratch;
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

class Simulation {
 public:
  Simulation(std::vector<SimulatedRank>& ranks, PhiloxStream& random,
             std::optional<Death> death = std::nullopt)
      : ranks_(ranks),
        random_(random),
        death_(death),
        count_(ranks.size()),
        buffers_(count_ * count_) {
    for (SimulatedRank& rank : ranks) rank.run.Start(rank.values, rank.scratch);
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

template <typename T>
T TreeOf(const std::vector<SimulatedRank>& ranks, size_t first, size_t last, size_t at,
         Reduction reduction) {
  if (last - first == 1) {
    T value;
    std::memcpy(&value, ranks[first].values.data() + at * sizeof(T), sizeof(T));
    return value;
  }
  size_t half = 1;
  while (2 * half < last - first) half *= 2;
  const T left = TreeOf<T>(ranks, first, first + half, at, reduction);
  const T right = TreeOf<T>(ranks, first + half, last, at, reduction);
  if (reduction == Reduction::kSum) return Plus(left, right);
  return reduction == Reduction::kMinimum ? std::min(left, right) : std::max(left, right);
}

// Returns the reduction of each element over the ranks, in tree order.
template <typename T>
Bytes TreeSums(const std::vector<SimulatedRank>& ranks, Reduction reduction) {
  Bytes sums(ranks[0].values.size());
  for (size_t i = 0; i < sums.size() / sizeof(T); ++i) {
    const T sum = TreeOf<T>(ranks, 0, ranks.size(), i, reduction);
    std::memcpy(sums.data() + i * sizeof(T), &sum, sizeof(T));
  }
  return sums;
}

Bytes ReductionOf(const std::vector<SimulatedRank>& ranks, const Call& call) {
  switch (call.dtype) {
    case DType::kFloat32:
      return TreeSums<float>(ranks, call.reduction);
    case DType::kFloat64:
      return TreeSums<double>(ranks, call.reduction);
    case DType::kInt32:
      return TreeSums<int32_t>(ranks, call.reduction);
    default:
      return TreeSums<int64_t>(ranks, call.reduction);
  }
}

template <typename T>
void FillWith(Bytes& bytes, PhiloxStream& random) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    const T value =
        static_cast<T>(std::ldexp(random.Uniform() - 0.5, static_cast<int>(random.Next() % 30)));
    std::memcpy(bytes.data() + i, &value, sizeof(T));
  }
}

void Fill(Bytes& bytes, DType dtype, PhiloxStream& random) {
  if (dtype == DType::kFloat32) return FillWith<float>(bytes, random);
  if (dtype == DType::kFloat64) return FillWith<double>(bytes, random);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
}

struct Case {
  Call call;
  int ranks;
  Costs costs;
  Algorithm algorithm;
};

Case RandomCase(PhiloxStream& random) {
  constexpr Operation kOperations[] = {Operation::kAllReduce,     Operation::kAllReduce,
                                       Operation::kReduceScatter, Operation::kAllGather,
                                       Operation::kBroadcast,     Operation::kReduce,
                                       Operation::kAllToAll,      Operation::kBarrier};
  constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64};
  Case result;
  result.ranks = 1 + static_cast<int>(random.Below(17));
  Call& call = result.call;
  call.operation = kOperations[random.Below(std::size(kOperations))];
  call.dtype = kTypes[random.Below(4)];
  call.reduction = static_cast<Reduction>(random.Below(3));
  call.root = static_cast<int>(random.Below(static_cast<uint32_t>(result.ranks)));
  call.element_bytes = static_cast<int64_t>(SizeOf(call.dtype));
  int64_t elements = random.Below(random.Next() % 8 == 0 ? 400 : 60);
  if (call.operation == Operation::kAllToAll) elements -= elements % result.ranks;
  if (call.operation == Operation::kBarrier) elements = 0;
  call.bytes = elements * call.element_bytes;
  result.costs.piece_bytes = 1 + random.Below(200);
  const std::vector<Algorithm> algorithms = Candidates(call, result.ranks);
  result.algorithm = algorithms[random.Below(static_cast<uint32_t>(algorithms.size()))];
  return result;
}

std::vector<SimulatedRank> MakeRanks(const Case& c, PhiloxStream& random) {
  std::vector<SimulatedRank> ranks;
  for (int rank = 0; rank < c.ranks; ++rank) {
    Plan plan = MakePlan(c.call, rank, c.ranks, c.costs, c.algorithm);
    const auto scratch = static_cast<size_t>(plan.scratch_bytes);
    ranks.push_back({PlanRun(std::move(plan)), Bytes(static_cast<size_t>(c.call.bytes)),
                     Bytes(scratch, std::byte{0xEE})});
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
  Expectation(const std::vector<SimulatedRank>& ranks, const Call& call)
      : call_(call), reduced_(ReductionOf(ranks, call)) {
    for (const SimulatedRank& rank : ranks) before_.push_back(rank.values);
    gathered_ = SlicesOf(before_, call);
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

TEST(PlanSimulation, EveryPlanGivesTheBitsOfTheTreeAndEnds) {
  const int cases = kSanitized ? 500 : 10'000;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    PhiloxStream random(PhiloxKey(static_cast<uint64_t>(seed), "plans"));
    const Case c = RandomCase(random);
    SCOPED_TRACE(StrCat("seed ", seed, ": ", ToString(c.call), " on ", c.ranks, " ranks, ",
                        Name(c.algorithm), ", pieces of ", c.costs.piece_bytes, " bytes"));
    std::vector<SimulatedRank> ranks = MakeRanks(c, random);
    const Expectation expected(ranks, c.call);
    ASSERT_TRUE(Simulation(ranks, random).Run()) << "the ranks wait for each other";
    expected.Check(ranks);
    for (const SimulatedRank& rank : ranks) {
      EXPECT_EQ(rank.run.plan().fingerprint, ranks[0].run.plan().fingerprint);
    }
  }
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
    const std::vector<Algorithm> algorithms = Candidates(c.call, c.ranks);
    c.algorithm = algorithms[random.Below(static_cast<uint32_t>(algorithms.size()))];
    std::vector<SimulatedRank> fresh = MakeRanks(c, random);
    const Expectation expected(fresh, c.call);
    std::vector<SimulatedRank> undisturbed = fresh;
    Simulation whole(undisturbed, random);
    ASSERT_TRUE(whole.Run());
    for (int64_t frame = 0; frame <= whole.frames(); ++frame) {
      const Death death{random.Below(static_cast<uint32_t>(c.ranks)), frame};
      SCOPED_TRACE(StrCat("seed ", seed, ": ", ToString(c.call), " on ", c.ranks, " ranks, ",
                          Name(c.algorithm), "; rank ", death.rank, " dies after ", frame,
                          " frames"));
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
