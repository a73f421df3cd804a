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

// 16-bit values are rounded once, so no plan sends partial results.
TEST(Plan, HalvesAreReducedOnlyFromTheValuesOfAllRanks) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (const Operation operation :
         {Operation::kAllReduce, Operation::kReduceScatter, Operation::kReduce}) {
      for (const int ranks : {2, 3, 4, 8, 16, 17}) {
        for (const int64_t bytes : {0, 64, 128 << 10, 25 << 20}) {
          Call call{.operation = operation, .bytes = bytes, .element_bytes = 2, .dtype = dtype};
          for (const Algorithm algorithm : Candidates(call, ranks)) {
            EXPECT_TRUE(algorithm == Algorithm::kExchange || algorithm == Algorithm::kDirect);
            call.bytes = std::min<int64_t>(bytes, 1 << 10);
            for (const Step& step : MakePlan(call, ranks - 1, ranks, {}, algorithm).steps) {
              EXPECT_TRUE(step.kind != StepKind::kReduce || step.operands == ranks);
            }
          }
        }
      }
    }
  }
}

TEST(Plan, RefusesAlgorithmsThatWouldRoundTooOften) {
  Call call = AllReduceOf(64);
  EXPECT_EQ(CheckAlgorithm(call, 4, Algorithm::kHalving), OkStatus());
  EXPECT_EQ(CheckAlgorithm(call, 3, Algorithm::kHalving),
            InvalidArgument("AllReduce of float32 by halving on 3 ranks: this algorithm does not "
                            "exist; use exchange or doubling or direct or ring"));
  call.dtype = DType::kBFloat16;
  for (const Algorithm algorithm : {Algorithm::kDoubling, Algorithm::kHalving, Algorithm::kRing}) {
    EXPECT_EQ(CheckAlgorithm(call, 4, algorithm),
              InvalidArgument("AllReduce of bfloat16 by ", Name(algorithm),
                              " on 4 ranks: this algorithm would round partial results; use "
                              "exchange or direct"));
  }
  EXPECT_EQ(CheckAlgorithm(call, 4, Algorithm::kDirect), OkStatus());
}

TEST(Plan, APartialSumIsNotDividedByAMean) {
  Call call = AllReduceOf(64);
  call.reduction = Reduction::kMean;
  const std::string text = ToString(MakePlan(call, 0, 4, {}, Algorithm::kDoubling));
  EXPECT_NE(text.find("values[0, 64) = sum(values[0, 64), scratch[0, 64)), after"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("values[0, 64) = sum(values[0, 64), scratch[0, 64)) / 4, after"),
            std::string::npos)
      << text;
}

TEST(Plan, ARingIsUsedOnlyOnRequestAndOnlyIfTheOrderMatters) {
  const Costs costs;
  const auto chosen = [&](const Call& call, int ranks = 4) {
    for (const Algorithm algorithm : Candidates(call, ranks)) {
      EXPECT_NE(algorithm, Algorithm::kRing);
    }
    EXPECT_NE(ChooseAlgorithm(call, ranks, costs), Algorithm::kRing);
    const Algorithm algorithm = ChooseAlgorithm(call, ranks, costs, {}, SumOrder::kRing);
    EXPECT_EQ(CheckAlgorithm(call, ranks, algorithm), OkStatus());
    return algorithm == Algorithm::kRing;
  };
  Call call = AllReduceOf(16);
  EXPECT_TRUE(chosen(call));
  EXPECT_FALSE(chosen(call, 5)) << "fewer values than ranks";
  call.reduction = Reduction::kMaximum;
  EXPECT_FALSE(chosen(call));
  call.reduction = Reduction::kMean;
  EXPECT_TRUE(chosen(call));
  call.operation = Operation::kReduceScatter;
  EXPECT_FALSE(chosen(call));
  call = AllReduceOf(1 << 20);
  for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kBFloat16, DType::kFloat16}) {
    call.dtype = dtype;
    call.element_bytes = static_cast<int64_t>(SizeOf(dtype));
    EXPECT_FALSE(chosen(call)) << Name(dtype);
  }
}

// A rank of a ring sends only to the next rank and receives only from the previous one, and every
// byte except those of one slice travels twice.
TEST(Plan, ARingUsesTwoLinksPerRank) {
  for (const int ranks : {2, 3, 5, 17}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t bytes = int64_t{68} * 60;
      int64_t sent = 0, received = 0;
      const Plan plan =
          MakePlan(AllReduceOf(bytes), rank, ranks, {.piece_bytes = 16}, Algorithm::kRing);
      for (const Step& step : plan.steps) {
        if (step.kind == StepKind::kSend) {
          EXPECT_EQ(step.peer, (rank + 1) % ranks);
          sent += step.range.bytes;
        }
        if (step.kind == StepKind::kReceive) {
          EXPECT_EQ(step.peer, (rank + ranks - 1) % ranks);
          received += step.range.bytes;
        }
      }
      EXPECT_EQ(sent, 2 * bytes / ranks * (ranks - 1));
      EXPECT_EQ(received, sent);
      EXPECT_LE(plan.scratch_bytes, 2 * 64) << "the scratch memory holds two pieces";
    }
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
           {Algorithm::kExchange, Algorithm::kDoubling, Algorithm::kHalving, Algorithm::kDirect,
            Algorithm::kRing}) {
        Call few = call;
        few.bytes = std::min<int64_t>(few.bytes, 6720);
        std::vector<Algorithm> candidates = Candidates(few, ranks);
        if (operation == Operation::kAllReduce) candidates.push_back(Algorithm::kRing);
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
