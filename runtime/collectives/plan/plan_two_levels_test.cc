// Tests the plans in two levels: when they are chosen, what they send over links, and how their
// time is predicted and they are printed.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/collectives/plan/plan.h"

namespace tfjob::collectives {
namespace {

Call AllReduceOf(int64_t bytes) {
  return {.operation = Operation::kAllReduce,
          .bytes = bytes,
          .element_bytes = 4,
          .dtype = DType::kFloat32};
}

// Places `each` consecutive ranks on each machine.
Hosts Blocks(int machines, int each) {
  std::vector<int> machine_of;
  for (int rank = 0; rank < machines * each; ++rank) machine_of.push_back(rank / each);
  return Hosts(machine_of);
}

Hosts Alternating(int ranks) {
  std::vector<int> machine_of;
  for (int rank = 0; rank < ranks; ++rank) machine_of.push_back(rank % 2);
  return Hosts(machine_of);
}

// Returns the bytes that the ranks on a machine send to other machines.
int64_t BytesOut(const Call& call, const Hosts& hosts, int machine, Algorithm algorithm) {
  int64_t bytes = 0;
  for (const int rank : hosts.RanksOn(machine)) {
    for (const Step& step : MakePlan(call, rank, hosts.ranks(), {}, algorithm, hosts).steps) {
      if (step.kind != StepKind::kSend || hosts.MachineOf(step.peer) == machine) continue;
      bytes += step.range.bytes;
    }
  }
  return bytes;
}

TEST(TwoLevels, SendEachSumOncePerMachine) {
  const int64_t bytes = 4 << 20;
  const Hosts hosts = Blocks(2, 4);
  EXPECT_EQ(BytesOut(AllReduceOf(bytes), hosts, 0, Algorithm::kTwoLevels), bytes);
  EXPECT_EQ(BytesOut(AllReduceOf(bytes), hosts, 0, Algorithm::kDirect), 4 * bytes);
  EXPECT_EQ(BytesOut(AllReduceOf(bytes), Blocks(4, 2), 3, Algorithm::kTwoLevels),
            2 * bytes * 3 / 4);
}

TEST(TwoLevels, SendNoValuesWithinAMachine) {
  const Hosts hosts = Blocks(2, 3);
  for (const Step& step :
       MakePlan(AllReduceOf(6000), 1, 6, {}, Algorithm::kTwoLevels, hosts).steps) {
    if (step.kind == StepKind::kReduce || hosts.MachineOf(step.peer) != 0) continue;
    EXPECT_TRUE(step.range.memory == PlanMemory::kPlace || step.range.bytes == 0);
  }
}

// If no two ranks on a machine form a subtree, the machine still sends each value to only one rank
// of every other machine.
TEST(TwoLevels, AreChosenWhereTheyArePredictedToBeFaster) {
  const struct {
    Hosts hosts;
    int64_t bytes;
    bool expected;
  } kCases[] = {
      {Blocks(2, 2), 25 << 20, true},   {Blocks(2, 4), 25 << 20, true},
      {Blocks(8, 8), 25 << 20, true},   {Blocks(2, 4), 64, false},
      {Blocks(1, 4), 25 << 20, false},  {Blocks(4, 1), 25 << 20, false},
      {Alternating(4), 25 << 20, true}, {Alternating(4), 4096, false},
      {Hosts(), 25 << 20, false},
  };
  for (const auto& c : kCases) {
    const int ranks = c.hosts.known() ? c.hosts.ranks() : 4;
    const Algorithm chosen = ChooseAlgorithm(AllReduceOf(c.bytes), ranks, {}, c.hosts);
    EXPECT_EQ(chosen == Algorithm::kTwoLevels, c.expected)
        << ToString(c.hosts) << ", " << c.bytes << " bytes: " << Name(chosen);
  }
}

TEST(TwoLevels, AreRefusedWhereTheyCannotKeepTheRule) {
  Call call = AllReduceOf(64);
  const Hosts hosts = Blocks(2, 2);
  EXPECT_EQ(CheckAlgorithm(call, 4, Algorithm::kTwoLevels, hosts), OkStatus());
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    call.dtype = dtype;
    call.element_bytes = 2;
    EXPECT_EQ(CheckAlgorithm(call, 4, Algorithm::kTwoLevels, hosts),
              InvalidArgument("AllReduce of ", Name(dtype),
                              " by two levels on 4 ranks: this algorithm would round partial "
                              "results; use exchange or direct"));
    EXPECT_EQ(ChooseAlgorithm({.operation = Operation::kAllReduce,
                               .bytes = 25 << 20,
                               .element_bytes = 2,
                               .dtype = dtype},
                              4, {}, hosts),
              Algorithm::kDirect);
  }
  for (const Hosts& other : {Hosts(), Blocks(1, 4), Blocks(4, 1)}) {
    EXPECT_EQ(CheckAlgorithm(AllReduceOf(64), 4, Algorithm::kTwoLevels, other),
              InvalidArgument("AllReduce of float32 by two levels on 4 ranks: this algorithm needs "
                              "several machines, of which at least one runs several ranks; use "
                              "exchange or doubling or halving or direct or ring"));
  }
  EXPECT_FALSE(CheckAlgorithm({.operation = Operation::kBroadcast, .bytes = 4}, 4,
                              Algorithm::kTwoLevels, hosts)
                   .ok());
}

// Returns the number of frames or bytes of the busiest rank, counted in the plans of all ranks.
double BusiestRank(const Call& call, const Hosts& hosts, const Costs& costs, bool bytes) {
  double most = 0;
  for (int rank = 0; rank < hosts.ranks(); ++rank) {
    double sent = 0, received = 0;
    for (const Step& step :
         MakePlan(call, rank, hosts.ranks(), costs, Algorithm::kTwoLevels, hosts).steps) {
      if (step.range.memory == PlanMemory::kPlace && bytes) continue;
      const double amount = bytes ? static_cast<double>(step.range.bytes) : 1;
      if (step.kind == StepKind::kSend) sent += amount;
      if (step.kind == StepKind::kReceive) received += amount;
    }
    most = std::max(most, bytes ? std::max(sent, received) : sent + received);
  }
  return most;
}

TEST(TwoLevels, PredictionsCountTheFramesAndBytesOfTheBusiestRank) {
  const Costs free{.round = 0,
                   .frame = 0,
                   .byte = 0,
                   .reduced_byte = 0,
                   .signal = 0,
                   .shared_byte = 0,
                   .piece_bytes = 48,
                   .chunk_bytes = 5760};
  Costs frames = free, sizes = free;
  frames.frame = 1;
  sizes.byte = 1;
  const Call call = AllReduceOf(4 * 5760);
  for (const Hosts& hosts : {Blocks(2, 2), Blocks(2, 4), Blocks(4, 3), Alternating(6),
                             Hosts({0, 0, 0, 0, 1}), Hosts({0, 1, 1, 2, 0, 0})}) {
    const auto predicted = [&](const Costs& costs) {
      return PredictSeconds(call, hosts.ranks(), Algorithm::kTwoLevels, costs, hosts);
    };
    SCOPED_TRACE(ToString(hosts));
    EXPECT_DOUBLE_EQ(BusiestRank(call, hosts, sizes, true), predicted(sizes));
    EXPECT_DOUBLE_EQ(BusiestRank(call, hosts, frames, false), predicted(frames));
  }
}

TEST(TwoLevels, SlowSharedMemoryIsAReasonForAnotherAlgorithm) {
  const Call call = AllReduceOf(25 << 20);
  const Hosts hosts = Blocks(2, 4);
  const auto chosen = [&](const Costs& costs) { return ChooseAlgorithm(call, 8, costs, hosts); };
  EXPECT_EQ(chosen({}), Algorithm::kTwoLevels);
  EXPECT_NE(chosen({.shared_byte = 10e-9}), Algorithm::kTwoLevels);
  EXPECT_NE(chosen({.signal = 1}), Algorithm::kTwoLevels);
}

TEST(TwoLevels, FingerprintsDifferWithTheMachines) {
  const auto fingerprint = [](const Hosts& hosts, const Costs& costs = {}) {
    return MakePlan(AllReduceOf(1000), 0, 4, costs, Algorithm::kDirect, hosts).fingerprint;
  };
  EXPECT_EQ(fingerprint(Hosts({5, 5, 2, 2})), fingerprint(Blocks(2, 2)));
  EXPECT_NE(fingerprint(Blocks(2, 2)), fingerprint(Alternating(4)));
  EXPECT_NE(fingerprint(Blocks(2, 2)), fingerprint({}));
  EXPECT_NE(fingerprint(Blocks(2, 2)), fingerprint(Blocks(2, 2), {.chunk_bytes = 64}));
}

TEST(TwoLevels, PrintTheirMachinesAndSteps) {
  const Costs costs{.round = 1e-5, .frame = 1e-6, .byte = 1e-9, .reduced_byte = 1e-9};
  const Hosts hosts({0, 0, 1});
  EXPECT_EQ(ToString(MakePlan(AllReduceOf(48), 1, 3, costs, Algorithm::kTwoLevels, hosts)),
            "AllReduce(48 bytes of float32, sum), rank 1 of 3: two levels, predicted 44.1 us\n"
            "  2 machines: ranks 0-1, rank 2\n"
            "  rank 0: sends 24 bytes in 2 frames, receives 24 bytes in 2 frames\n"
            "  rank 2: sends 24 bytes in 2 frames, receives 24 bytes in 2 frames\n"
            "  0: shared[0, 48) of 1 = copy(values[0, 48))\n"
            "  1: send the place of the values of 1 to 0, after 0\n"
            "  2: receive the place of the values of 0 from 0\n"
            "  3: shared[36, 48) of 1 = sum(shared[36, 48) of 0, shared[36, 48) of 1), after 2 0\n"
            "  4: send shared[36, 48) of 1 to 2, after 3\n"
            "  5: shared[24, 36) of 1 = sum(shared[24, 36) of 0, shared[24, 36) of 1), after 2 0\n"
            "  6: receive scratch[64, 76) from 2\n"
            "  7: shared[24, 36) of 1 = sum(shared[24, 36) of 1, scratch[64, 76)), after 5 6\n"
            "  8: send shared[24, 36) of 1 to 2, after 7\n"
            "  9: shared[24, 36) of 0 = copy(shared[24, 36) of 1), after 7\n"
            "  10: receive shared[36, 48) of 1 from 2, after 4\n"
            "  11: shared[36, 48) of 0 = copy(shared[36, 48) of 1), after 10\n"
            "  12: send a signal to 0, after 9 11\n"
            "  13: receive a signal from 0\n"
            "  14: values[0, 48) = copy(shared[0, 48) of 1), after 8 7 10 13\n");
}

}  // namespace
}  // namespace tfjob::collectives
