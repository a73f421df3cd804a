#include "runtime/collectives/row_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/base/philox.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {
namespace {

constexpr size_t kCols = 3;

template <typename T>
struct Rank {
  std::vector<int64_t> indices;
  std::vector<T> values;
  std::vector<T> dense;  // the whole matrix

  MatrixRows rows() const { return {indices, std::as_bytes(std::span(values))}; }
};

// Returns a rank with about `share` of the rows. The magnitudes of its values differ so much that
// a sum in another order has different bits. Some values are −0.
template <typename T>
Rank<T> RankOf(PhiloxStream& random, size_t rows, double share) {
  Rank<T> rank{.indices = {}, .values = {}, .dense = std::vector<T>(rows * kCols)};
  for (size_t row = 0; row < rows; ++row) {
    if (random.Uniform() >= share) continue;
    rank.indices.push_back(static_cast<int64_t>(row));
    for (size_t col = 0; col < kCols; ++col) {
      const double value = std::ldexp(random.Uniform() - 0.5, static_cast<int>(random.Next() % 40));
      rank.values.push_back(random.Next() % 8 == 0 ? -T{0} : static_cast<T>(value));
      rank.dense[row * kCols + col] = rank.values.back();
    }
  }
  return rank;
}

// Compares the sum of rows with the reduction of dense matrices, bit for bit.
template <typename T>
void CompareWithDense(size_t ranks, size_t rows, double share) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks, " << rows << " rows, " << share);
  PhiloxStream random(PhiloxKey(ranks * 1000 + rows, "rows"));
  std::vector<Rank<T>> all;
  for (size_t i = 0; i < ranks; ++i) all.push_back(RankOf<T>(random, rows, share));
  std::vector<MatrixRows> by_rows;
  std::vector<std::span<const std::byte>> by_matrix;
  for (const Rank<T>& rank : all) {
    by_rows.push_back(rank.rows());
    by_matrix.push_back(std::as_bytes(std::span(rank.dense)));
  }
  std::vector<T> expected(rows * kCols);
  CombineAll(DTypeOf<T>::value, Reduction::kSum, std::as_writable_bytes(std::span(expected)),
             by_matrix);

  RowSum sum;
  sum.Find(by_rows);
  std::vector<int64_t> indices;
  for (size_t row = 0; row < rows; ++row) {
    const auto at = static_cast<int64_t>(row);
    if (std::ranges::any_of(all, [&](const Rank<T>& r) {
          return std::ranges::find(r.indices, at) != r.indices.end();
        })) {
      indices.push_back(at);
    }
  }
  ASSERT_EQ(std::vector<int64_t>(sum.indices().begin(), sum.indices().end()), indices);
  std::vector<T> got(indices.size() * kCols);
  sum.Add(DTypeOf<T>::value, by_rows, std::as_writable_bytes(std::span(got)));
  for (size_t i = 0; i < got.size(); ++i) {
    const T& wanted = expected[static_cast<size_t>(indices[i / kCols]) * kCols + i % kCols];
    ASSERT_EQ(std::memcmp(&got[i], &wanted, sizeof(T)), 0)
        << "row " << indices[i / kCols] << ": " << got[i] << ", expected " << wanted;
  }
}

TEST(RowSum, HasTheBitsOfTheSumOfDenseMatrices) {
  for (const size_t ranks : {1, 2, 3, 4, 5, 7, 8, 11, 17}) {
    for (const size_t rows : {1, 9, 200}) {
      for (const double share : {0.0, 0.1, 0.6, 1.0}) {
        CompareWithDense<float>(ranks, rows, share);
        CompareWithDense<double>(ranks, rows, share);
      }
    }
  }
}

TEST(RowSum, ReusesItsMemoryForSmallerSums) {
  const std::vector<int64_t> many = {0, 4, 9}, few = {4};
  const std::vector<float> values = {1, 2, 3}, one = {5};
  const MatrixRows first{many, std::as_bytes(std::span(values))},
      second{few, std::as_bytes(std::span(one))};
  RowSum sum;
  sum.Find(std::vector{first, second});
  EXPECT_EQ(sum.rows(), 3);
  sum.Find(std::vector{second, second});
  ASSERT_EQ(sum.rows(), 1);
  EXPECT_EQ(sum.indices()[0], 4);
  float result = 0;
  sum.Add(DType::kFloat32, std::vector{second, second},
          std::as_writable_bytes(std::span(&result, 1)));
  EXPECT_EQ(result, 10);
}

TEST(CheckRowIndices, NamesTheFirstWrongIndex) {
  const auto check = [](std::vector<int64_t> indices) { return CheckRowIndices(indices, 5); };
  EXPECT_EQ(check({}), OkStatus());
  EXPECT_EQ(check({0, 1, 4}), OkStatus());
  EXPECT_EQ(check({0, 5}), InvalidArgument("index 5, at position 1, is no row: expected 0 to 4"));
  EXPECT_EQ(check({-1}), InvalidArgument("index -1, at position 0, is no row: expected 0 to 4"));
  for (const auto& indices : {std::vector<int64_t>{0, 2, 2}, {0, 2, 1}}) {
    EXPECT_EQ(check(indices), InvalidArgument("index ", indices[2],
                                              ", at position 2, follows index 2: expected "
                                              "strictly ascending indices"));
  }
}

}  // namespace
}  // namespace tfjob::collectives
