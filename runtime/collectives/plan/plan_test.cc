#include "runtime/collectives/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tfjob::collectives {
namespace {

Call AllReduceOf(int64_t bytes) {
  return {.operation = Operation::kAllReduce,
          .bytes = bytes,
          .element_bytes = 4,
          .dtype = DType::kFloat32};
}

TEST(Plan, PrintsOneStepPerLine) {
  const Costs costs{.round = 1e-5, .frame = 1e-6, .byte = 1e-9, .reduced_byte = 1e-9};
  EXPECT_EQ(ToString(MakePlan(AllReduceOf(1000), 0, 2, costs)),
            "AllReduce(1000 bytes of float32, sum), rank 0 of 2: exchange, predicted 15.0 us\n"
            "  rank 1: sends 1000 bytes in 1 frames, receives 1000 bytes in 1 frames\n"
            "  0: send values[0, 1000) to 1\n"
            "  1: receive scratch[0, 1000) from 1\n"
            "  2: values[0, 1000) = sum(values[0, 1000), scratch[0, 1000)), after 0 1\n");
  const Call call{.operation = Operation::kBroadcast, .bytes = 8, .root = 1};
  EXPECT_EQ(ToString(MakePlan(call, 0, 3, costs, Algorithm::kDoubling)),
            "Broadcast(8 bytes, root 1), rank 0 of 3: doubling, predicted 22.0 us\n"
            "  rank 1: sends 0 bytes in 0 frames, receives 8 bytes in 1 frames\n"
            "  0: receive values[0, 8) from 1\n");
}

TEST(Plan, OperandsFollowTheTreeOnBothSides) {
  const Costs costs;
  for (const int rank : {0, 1}) {
    const Plan plan = MakePlan(AllReduceOf(8), rank, 2, costs, Algorithm::kDoubling);
    const auto operands = plan.OperandsOf(plan.steps.back());
    ASSERT_EQ(operands.size(), 2U);
    EXPECT_EQ(operands[0].memory, rank == 0 ? PlanMemory::kValues : PlanMemory::kScratch);
    EXPECT_EQ(operands[1].memory, rank == 0 ? PlanMemory::kScratch : PlanMemory::kValues);
  }
}

TEST(Plan, FewBytesTakeFewRoundsAndManyBytesMoveEachByteOnce) {
  const Costs costs;
  const struct {
    int ranks;
    int64_t bytes;
    Algorithm expected;
  } kCases[] = {
      {2, 64, Algorithm::kExchange},      {2, 4096, Algorithm::kExchange},
      {2, 25 << 20, Algorithm::kDirect},  {3, 64, Algorithm::kExchange},
      {3, 25 << 20, Algorithm::kDirect},  {4, 64, Algorithm::kExchange},
      {8, 25 << 20, Algorithm::kDirect},  {16, 64, Algorithm::kDoubling},
      {17, 25 << 20, Algorithm::kDirect}, {16, 128 << 10, Algorithm::kHalving},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Name(ChooseAlgorithm(AllReduceOf(c.bytes), c.ranks, costs)), Name(c.expected))
        << c.ranks << " ranks, " << c.bytes << " bytes";
  }
}

// Returns the number of frames or bytes of the busiest rank, counted in the plans of all ranks.
// PredictSeconds computes the same number using formulas.
double BusiestRank(const Call& call, int ranks, Algorithm algorithm, const Costs& costs,
                   bool bytes) {
  double most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    double sent = 0, received = 0;
    for (const Step& step : MakePlan(call, rank, ranks, costs, algorithm).steps) {
      const double amount = bytes ? static_cast<double>(step.range.bytes) : 1;
      if (step.kind == StepKind::kSend) sent += amount;
      if (step.kind == StepKind::kReceive) received += amount;
    }
    most = std::max(most, bytes ? std::max(sent, received) : sent + received);
  }
  return most;
}

TEST(Plan, PredictionsCountTheFramesAndBytesOfTheBusiestRank) {
  const int64_t bytes = 840 * 32;  // divisible into whole pieces for each number of ranks
  const Costs frames{.round = 0, .frame = 1, .byte = 0, .reduced_byte = 0, .piece_bytes = 32};
  const Costs sizes{.round = 0, .frame = 0, .byte = 1, .reduced_byte = 0, .piece_bytes = 32};
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
        Operation::kBroadcast, Operation::kReduce, Operation::kAllToAll, Operation::kBarrier}) {
    for (const int ranks : {2, 4, 8, 3, 5, 6, 7}) {
      Call call = AllReduceOf(operation == Operation::kBarrier ? 0 : bytes);
      call.operation = operation;
      for (const Algorithm algorithm :
           {Algorithm::kExchange, Algorithm::kDoubling, Algorithm::kHalving, Algorithm::kDirect}) {
        Call few = call;
        few.bytes = std::min<int64_t>(few.bytes, 6720);
        const std::vector<Algorithm> candidates = Candidates(few, ranks);
        if (std::ranges::find(candidates, algorithm) == candidates.end()) continue;
        const double real_frames = BusiestRank(call, ranks, algorithm, frames, false);
        const double real_bytes = BusiestRank(call, ranks, algorithm, sizes, true);
        const double allowed = algorithm == Algorithm::kDoubling ? 1.5 : 1;
        SCOPED_TRACE(StrCat(Name(operation), ", ", ranks, " ranks, ", Name(algorithm)));
        EXPECT_LE(real_frames, PredictSeconds(call, ranks, algorithm, frames));
        EXPECT_GE(real_frames * allowed, PredictSeconds(call, ranks, algorithm, frames));
        EXPECT_LE(real_bytes, PredictSeconds(call, ranks, algorithm, sizes) + 1);
        EXPECT_GE(real_bytes * allowed + 1, PredictSeconds(call, ranks, algorithm, sizes));
      }
    }
  }
}

TEST(Plan, FingerprintsDifferWithTheCallTheAlgorithmAndThePieces) {
  const Costs costs, smaller{.piece_bytes = 1024};
  const Plan plan = MakePlan(AllReduceOf(1000), 0, 2, costs, Algorithm::kDirect);
  EXPECT_EQ(plan.fingerprint,
            MakePlan(AllReduceOf(1000), 1, 2, costs, Algorithm::kDirect).fingerprint);
  Call other = AllReduceOf(1000);
  other.reduction = Reduction::kMaximum;
  for (const Plan& different : {MakePlan(AllReduceOf(1004), 0, 2, costs, Algorithm::kDirect),
                                MakePlan(AllReduceOf(1000), 0, 3, costs, Algorithm::kDirect),
                                MakePlan(AllReduceOf(1000), 0, 2, costs, Algorithm::kExchange),
                                MakePlan(AllReduceOf(1000), 0, 2, smaller, Algorithm::kDirect),
                                MakePlan(other, 0, 2, costs, Algorithm::kDirect)}) {
    EXPECT_NE(different.fingerprint, plan.fingerprint) << ToString(different);
  }
}

}  // namespace
}  // namespace tfjob::collectives
