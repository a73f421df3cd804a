// Compares the exchange of rows with a reduction of whole gradients. The ranks are threads.
#include "runtime/strategy/gradient_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "runtime/base/philox.h"
#include "runtime/collectives/reduction.h"
#include "runtime/strategy/test_group.h"

namespace tfjob::strategy {
namespace {

using collectives::Communicator;

constexpr int64_t kRows = 12, kCols = 3;

// One rank's gradient of a table, as a program returns it.
struct Gradient {
  std::vector<int64_t> indices;  // followed by -1
  std::vector<float> values;
  std::vector<float> dense = std::vector<float>(kRows * kCols);
};

Gradient RandomGradient(PhiloxStream& random, double share) {
  Gradient gradient;
  for (int64_t row = 0; row < kRows; ++row) {
    if (random.Uniform() >= share) continue;
    gradient.indices.push_back(row);
    for (int64_t col = 0; col < kCols; ++col) {
      const double value = std::ldexp(random.Uniform() - 0.5, static_cast<int>(random.Next() % 30));
      gradient.values.push_back(static_cast<float>(value));
      gradient.dense[static_cast<size_t>(row * kCols + col)] = gradient.values.back();
    }
  }
  gradient.indices.resize(kRows + 2, -1);
  gradient.values.resize((kRows + 2) * kCols);
  return gradient;
}

std::vector<TableItem> Tables(size_t count) {
  std::vector<TableItem> tables;
  for (size_t t = 0; t < count; ++t)
    tables.push_back({.variable = static_cast<int>(t),
                      .name = StrCat("table", t),
                      .rows = kRows,
                      .cols = kCols});
  return tables;
}

// Counts the calls of AllReduce, which only whole gradients use.
class CountingCommunicator : public MeetingCommunicator {
 public:
  using MeetingCommunicator::MeetingCommunicator;
  Status AllReduce(std::span<std::byte> values, DType dtype,
                   collectives::Reduction reduction) override {
    ++reductions;
    return MeetingCommunicator::AllReduce(values, dtype, reduction);
  }
  int reductions = 0;
};

// Expects the rows of `sum` to be those of the whole gradient, and all other rows of the whole
// gradient to be zero.
void ExpectRowsOf(const std::vector<float>& whole, const std::vector<bool>& present,
                  const GradientRows::Rows& sum) {
  size_t at = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    if (!present[static_cast<size_t>(row)]) continue;
    ASSERT_LT(at, sum.indices.size());
    EXPECT_EQ(sum.indices[at], row);
    EXPECT_EQ(std::memcmp(sum.values.data() + at * kCols * sizeof(float),
                          &whole[static_cast<size_t>(row * kCols)], kCols * sizeof(float)),
              0)
        << "row " << row;
    ++at;
  }
  EXPECT_EQ(at, sum.indices.size());
}

constexpr double kWeight = 0.3;

// Returns a random gradient of a table for each rank. All ranks that call this function get the
// same list of gradients.
std::vector<Gradient> GradientsOf(size_t step, size_t table, int ranks, double share) {
  std::vector<Gradient> gradients;
  for (int r = 0; r < ranks; ++r) {
    PhiloxStream random(PhiloxKey(step * 1000 + table * 100 + static_cast<size_t>(r), "rows"));
    gradients.push_back(RandomGradient(random, share));
  }
  return gradients;
}

void SetOwn(GradientRows& rows, size_t table, const Gradient& own) {
  rows.Set(table, own.indices, std::as_bytes(std::span(own.values)), kWeight);
}

// Expects the sum of a table's gradients to be bit-identical to the reduction of the whole
// gradients.
void ExpectSumOf(std::vector<Gradient> gradients, const GradientRows::Rows& sum) {
  std::vector<float> whole(kRows * kCols);
  std::vector<std::span<const std::byte>> spans;
  std::vector<bool> present(kRows);
  for (Gradient& gradient : gradients) {
    for (float& value : gradient.dense) value *= static_cast<float>(kWeight);
    spans.push_back(std::as_bytes(std::span(gradient.dense)));
    for (const int64_t index : gradient.indices)
      if (index >= 0) present[static_cast<size_t>(index)] = true;
  }
  collectives::CombineAll(DType::kFloat32, collectives::Reduction::kSum,
                          std::as_writable_bytes(std::span(whole)), spans);
  ExpectRowsOf(whole, present, sum);
}

// Exchanges random gradients of two tables several times. `shares` contains, for each step, the
// approximate share of the first table's rows that each rank has; for the second table, the share
// is always about 0.2.
void CompareWithDense(int ranks, const std::vector<double>& shares, int expected_reductions) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks");
  OnEveryRank<CountingCommunicator>(
      static_cast<size_t>(ranks), [&](int rank, CountingCommunicator& communicator) {
        GradientRows rows(Tables(2));
        for (size_t step = 0; step < shares.size(); ++step) {
          const std::vector<Gradient> all[] = {GradientsOf(step, 0, ranks, shares[step]),
                                               GradientsOf(step, 1, ranks, 0.2)};
          rows.Begin();
          for (size_t t = 0; t < 2; ++t) SetOwn(rows, t, all[t][static_cast<size_t>(rank)]);
          ASSERT_EQ(rows.Exchange(communicator), OkStatus());
          for (size_t t = 0; t < 2; ++t) ExpectSumOf(all[t], rows.Sum(t));
        }
        EXPECT_EQ(communicator.reductions, expected_reductions);
      });
}

TEST(GradientRows, HaveTheBitsOfTheReducedGradients) {
  // If all ranks combined had 20 rows or more, they would reduce the whole gradient.
  for (const int ranks : {1, 2, 3, 4, 5}) CompareWithDense(ranks, {0.0, 0.2, 0.25, 0.1}, 0);
}

TEST(GradientRows, TravelAsAWholeIfThisMovesFewerBytes) {
  CompareWithDense(2, {0.5, 1.0}, 1);
  CompareWithDense(3, {1.0, 0.1, 1.0}, 2);
  CompareWithDense(4, {1.0, 0.9, 0.2, 1.0}, 3);
}

// Exchanges all rows of a table until an exchange fails, at most twice. Returns the last status.
Status ExchangeTwice(GradientRows& rows, int rank, Communicator& communicator) {
  Status status;
  for (size_t step = 0; step < 2 && status.ok(); ++step) {
    rows.Begin();
    const auto all = GradientsOf(step, 0, communicator.size(), 1.0);
    SetOwn(rows, 0, all[static_cast<size_t>(rank)]);
    status = rows.Exchange(communicator);
    if (status.ok()) ExpectSumOf(all, rows.Sum(0));
  }
  return status;
}

// An exchange of whole gradients consists of four operations: three exchange the row counts, the
// sizes and the bytes, and the fourth reduces the gradients. In the first exchange, the ranks also
// allocate memory.
TEST(GradientRows, AFaultInWholeGradientsDoesNotChangeLaterSums) {
  constexpr int kRanks = 3;
  constexpr int64_t kOperations = 9;
  for (int64_t operation = 1; operation <= kOperations; ++operation) {
    SCOPED_TRACE(operation);
    auto disturbed = std::make_shared<Meeting>(
        kRanks, [operation](int64_t at, int rank) { return at == operation && rank == 1; });
    auto intact = std::make_shared<Meeting>(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        GradientRows rows(Tables(1));
        {
          MeetingCommunicator communicator(disturbed, rank);
          const Status status = ExchangeTwice(rows, rank, communicator);
          if (rank == 1) {
            EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
          }
          rows.Disconnect();
        }
        MeetingCommunicator communicator(intact, rank);
        EXPECT_EQ(ExchangeTwice(rows, rank, communicator), OkStatus());
        rows.Disconnect();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// A row is either sent with an index of eight bytes or reduced with one extra element.
TEST(GradientRows, AreSentUpToTheBytesOfAReduction) {
  EXPECT_EQ(MostRowsToSend({.rows = 100, .cols = 1}), 2 * 100 * 8 / 12);
  EXPECT_EQ(MostRowsToSend({.rows = 100, .cols = 64}), 2 * 100 * 260 / 264);
  EXPECT_EQ(MostRowsToSend({.dtype = DType::kFloat64, .rows = 100, .cols = 1}), 2 * 100 * 16 / 16);
}

TEST(GradientRows, ARankWithoutRowsTakesPart) {
  OnEveryRank(3, [](int rank, Communicator& communicator) {
    GradientRows rows(Tables(1));
    rows.Begin();
    const std::vector<int64_t> indices = {4, -1};
    const std::vector<float> values = {1, 2, 3, 0, 0, 0};
    if (rank == 1) rows.Set(0, indices, std::as_bytes(std::span(values)), 2);
    ASSERT_EQ(rows.Exchange(communicator), OkStatus());
    EXPECT_EQ(rows.sent_bytes(), rank == 1 ? 24 : 0) << "an index and three values, in words";
    const GradientRows::Rows sum = rows.Sum(0);
    ASSERT_EQ(sum.indices.size(), 1);
    EXPECT_EQ(sum.indices[0], 4);
    const float expected[] = {2, 4, 6};
    EXPECT_EQ(std::memcmp(sum.values.data(), expected, sizeof expected), 0);
    const GradientRows::Rows padded = rows.Padded(0, 3);
    EXPECT_EQ(std::vector<int64_t>(padded.indices.begin(), padded.indices.end()),
              (std::vector<int64_t>{4, -1, -1}));
    const float zeros[9] = {2, 4, 6};
    EXPECT_EQ(std::memcmp(padded.values.data(), zeros, sizeof zeros), 0);
  });
}

// The message that rank 1 sends in place of rows 2 and 5.
struct Forged {
  int64_t count = 2;           // the number of rows that it announces
  std::vector<int64_t> words;  // the indices, followed by the values
};

// Has rank 1 send the forged bytes. Returns the errors of the three ranks.
std::vector<Status> ErrorsOf(const Forged& forged) {
  std::vector<Status> errors(3);
  auto meeting = std::make_shared<Meeting>(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      MeetingCommunicator communicator(meeting, rank);
      Status& error = errors[static_cast<size_t>(rank)];
      if (rank != 1) {
        GradientRows rows(Tables(1));
        rows.Begin();
        error = rows.Exchange(communicator);
        return;
      }
      std::vector<int64_t> counts = {0, forged.count, 0};
      error = communicator.AllGather(std::as_writable_bytes(std::span(counts)), sizeof(int64_t));
      std::vector<std::byte> all;
      std::vector<size_t> sizes;
      constexpr size_t kMost = 2 * (sizeof(int64_t) + kCols * sizeof(float));
      if (error.ok())
        error = communicator.AllGatherVariable(std::as_bytes(std::span(forged.words)), kMost, all,
                                               sizes);
      if (error.ok()) error = communicator.Barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(GradientRows, NameTheRankThatSendsWhatTheTableCannotHave) {
  const auto expect = [](const Forged& forged, const std::string& message) {
    for (const Status& error : ErrorsOf(forged)) EXPECT_EQ(error, InvalidArgument(message));
  };
  constexpr char kAnnounced[] = " rows of the gradient of table0, which has 12 rows";
  expect({.count = -1}, StrCat("rank 1 announced -1", kAnnounced));
  expect({.count = 13}, StrCat("rank 1 announced 13", kAnnounced));
  expect({.count = int64_t{1} << 62}, StrCat("rank 1 announced 4611686018427387904", kAnnounced));
  expect({.words = {2, 5, 0, 0}},
         "rank 1 sent 32 bytes of rows of gradients: expected 40, as it had announced");
  constexpr char kWrong[] = "rank 1 sent wrong rows of the gradient of table0: index ";
  expect({.words = {2, 12, 0, 0, 0}},
         StrCat(kWrong, "12, at position 1, is no row: expected 0 to 11"));
  expect({.words = {-1, 5, 0, 0, 0}},
         StrCat(kWrong, "-1, at position 0, is no row: expected 0 to 11"));
  expect({.words = {5, 5, 0, 0, 0}},
         StrCat(kWrong, "5, at position 1, follows index 5: expected strictly ascending indices"));
}

}  // namespace
}  // namespace tfjob::strategy
