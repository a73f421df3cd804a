// Tests all-reduce around a ring of real sockets.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/contract.h"
#include "runtime/collectives/socket/socket_communicator.h"
#include "runtime/collectives/socket/test_sockets.h"
#include "runtime/collectives/test_ranks.h"

namespace tfjob::collectives {
namespace {

Communicators MakeRing(size_t ranks, const Costs& costs = {}, SocketKind kind = SocketKind::kUnix) {
  Sockets sockets = Connect(ranks, kind);
  Communicators communicators;
  for (size_t rank = 0; rank < ranks; ++rank) {
    communicators.push_back(*MakeSocketCommunicator({.rank = static_cast<int>(rank),
                                                     .sockets = std::move(sockets[rank]),
                                                     .costs = costs,
                                                     .order = SumOrder::kRing}));
  }
  return communicators;
}

Status Sum(Communicator& communicator, std::vector<float>& values) {
  return communicator.AllReduce(Bytes(values), DType::kFloat32, Reduction::kSum);
}

// Returns the sums of `values` (by rank) in the order of a ring, written as a plain loop.
std::vector<float> RingSums(const std::vector<std::vector<float>>& values) {
  const auto ranks = static_cast<int>(values.size());
  std::vector<float> sums;
  for (int slice = 0; slice < ranks; ++slice) {
    const auto [begin, count] = SliceOf(static_cast<int64_t>(values[0].size()), slice, ranks);
    for (int64_t i = begin; i < begin + count; ++i) {
      float sum = values[static_cast<size_t>((slice + 1) % ranks)][static_cast<size_t>(i)];
      for (int hop = 2; hop <= ranks; ++hop) {
        sum += values[static_cast<size_t>((slice + hop) % ranks)][static_cast<size_t>(i)];
      }
      sums.push_back(sum);
    }
  }
  return sums;
}

// Values whose sum depends on the order of the additions.
std::vector<std::vector<float>> UnevenValues(size_t ranks, size_t count) {
  std::vector<std::vector<float>> values(ranks, std::vector<float>(count));
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < count; ++i) {
      values[rank][i] = std::ldexp(static_cast<float>((rank * 7919 + i * 104729) % 1009) - 504.F,
                                   static_cast<int>((rank * 5 + i * 3) % 23));
    }
  }
  return values;
}

TEST(Ring, GivesAllRanksEqualBitsInItsOwnOrder) {
  for (const SocketKind kind : {SocketKind::kUnix, SocketKind::kTcp}) {
    for (const size_t ranks : {1, 2, 3, 4, 5}) {
      for (const size_t count : {size_t{2}, size_t{1001}, size_t{300'007}}) {
        const std::vector<std::vector<float>> values = UnevenValues(ranks, count);
        const bool ring = count >= ranks;  // fewer values are added in the order of the tree
        const std::vector<float> expected = RingSums(values);
        std::vector<std::vector<float>> sums = values;
        OnAllRanks(MakeRing(ranks, {.piece_bytes = 10'000}, kind), [&](Communicator& communicator) {
          EXPECT_EQ(Sum(communicator, sums[static_cast<size_t>(communicator.rank())]), OkStatus());
        });
        for (const std::vector<float>& sum : sums) {
          EXPECT_EQ(sum, ring ? expected : sums[0]) << ranks << " ranks, " << count << " values";
        }
      }
    }
  }
}

// Every operation except sums of float32 and float64 values gives the same bits as without a ring.
TEST(Ring, ChangesOnlySums) {
  OnAllRanks(MakeRing(3), [](Communicator& communicator) {
    const std::vector<uint64_t> hashes = HashesOfSums(communicator);
    for (size_t type = 0; type < hashes.size(); ++type) {
      const bool rounds = type < 2;  // float32 and float64
      EXPECT_EQ(hashes[type] == kHashesOfThreeRanks[type], !rounds) << "type " << type;
    }
    std::vector<float> values{1.F, static_cast<float>(communicator.rank())};
    EXPECT_EQ(communicator.AllReduce(Bytes(values), DType::kFloat32, Reduction::kMaximum),
              OkStatus());
    EXPECT_EQ(values, (std::vector<float>{1.F, 2.F}));
  });
}

TEST(Ring, RanksWithDifferentOrdersGetAnErrorThatNamesTheCall) {
  Sockets sockets = Connect(3);
  Communicators communicators;
  for (int rank = 0; rank < 3; ++rank) {
    communicators.push_back(
        *MakeSocketCommunicator({.rank = rank,
                                 .sockets = std::move(sockets[static_cast<size_t>(rank)]),
                                 .order = rank == 1 ? SumOrder::kRing : SumOrder::kTree}));
  }
  OnAllRanks(communicators, [](Communicator& communicator) {
    std::vector<float> values(1000);
    const Status status = Sum(communicator, values);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(Message(status).find("AllReduce(4000 bytes of float32, sum)"), std::string::npos)
        << status;
  });
}

// A rank that dies in the middle of a ring ends the operations of all others, and is named.
TEST(Ring, ADeadRankIsNamed) {
  Sockets sockets = Connect(4);
  Communicators communicators;
  for (const size_t rank : {0, 1, 2}) {
    communicators.push_back(*MakeSocketCommunicator({.rank = static_cast<int>(rank),
                                                     .sockets = std::move(sockets[rank]),
                                                     .order = SumOrder::kRing}));
  }
  sockets[3].clear();
  std::vector<Status> results(3);
  OnAllRanks(communicators, [&](Communicator& communicator) {
    std::vector<float> values(100'000);
    results[static_cast<size_t>(communicator.rank())] = Sum(communicator, values);
  });
  int named = 0;
  for (const Status& status : results) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
    named += Message(status).find("rank 3 ") == 0 ? 1 : 0;
  }
  EXPECT_GE(named, 1);
}

}  // namespace
}  // namespace tfjob::collectives
