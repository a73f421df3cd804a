#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/kernels/cpu/check.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

// Returns `count` ids below `rows`. Many ids occur more than once.
Tensor Ids(D dtype, int64_t count, int64_t rows) {
  Tensor ids(dtype, {count});
  for (int64_t i = 0; i < count; ++i) SetValue(ids, i, static_cast<double>(i * i % 13 % rows));
  return ids;
}

int64_t IdAt(const Tensor& ids, int64_t i) {
  return static_cast<int64_t>(ValueAt(ids, i));
}

// Returns, for each id, the sum of its rows of `values`, added in the order of their positions.
std::map<int64_t, std::vector<double>> SumsOf(const Tensor& ids, const Tensor& values) {
  const int64_t cols = values.shape().dim(1);
  std::map<int64_t, std::vector<double>> sums;
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    std::vector<double>& sum = sums[IdAt(ids, i)];
    sum.resize(static_cast<size_t>(cols));
    for (int64_t c = 0; c < cols; ++c) sum[static_cast<size_t>(c)] += ValueAt(values, i * cols + c);
  }
  return sums;
}

TEST(Gather, CopiesRowsOfAnyType) {
  for (const D id : {D::kInt32, D::kInt64}) {
    for (const D dtype : {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64, D::kUInt8, D::kBool}) {
      for (const int64_t count : {0, 1, 5, 4000}) {
        const Tensor table = Values(dtype, {13, 7}, 1, 0, 100), ids = Ids(id, count, 13);
        Tensor rows(dtype, {count, 7});
        for (int64_t i = 0; i < rows.num_elements(); ++i)
          SetValue(rows, i, ValueAt(table, IdAt(ids, i / 7) * 7 + i % 7));
        Check({"Gather", {}, {table, ids}, {rows}});
      }
    }
  }
}

// Runs Gather on a table with three rows. Returns the message of the error that is reported to the
// stream, or "" if there is none.
std::string GatherError(const Tensor& ids, const Attributes& attributes = {}) {
  const Tensor table(D::kFloat32, {3, 2});
  Tensor out(D::kFloat32, {ids.num_elements(), 2});
  const auto of = [](const Tensor& t) { return Operand::Dense(t.dtype(), t.shape()); };
  auto kernel = CpuKernels().Prepare({"Gather", attributes, {of(table), of(ids)}, {of(out)}});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  const void* inputs[] = {table.bytes().data(), ids.bytes().data()};
  void* outputs[] = {out.bytes().data()};
  Stream stream;
  (*kernel)->Run(inputs, outputs, nullptr, stream);
  return std::string(Message(stream.TakeStatus()));
}

TEST(Gather, ReportsTheFirstIdThatIsNoRow) {
  EXPECT_EQ(GatherError(Tensor::Of<int32_t>({3}, {0, 2, 1})), "");
  EXPECT_EQ(GatherError(Tensor::Of<int32_t>({4}, {0, 3, -1, 1}), {{"table", std::string("words")}}),
            "id 3 at position 1 of the batch is no row of words: expected 0 to 2");
  EXPECT_EQ(GatherError(Tensor::Of<int64_t>({2}, {0, int64_t{1} << 40})),
            "id 1099511627776 at position 1 of the batch is no row of the table: expected 0 to 2");
  EXPECT_EQ(GatherError(Tensor::Of<int32_t>({1}, {INT32_MIN})),
            "id -2147483648 at position 0 of the batch is no row of the table: expected 0 to 2");
}

TEST(DeduplicateIndexedSlices, SumsRowsOfEqualIds) {
  for (const D id : {D::kInt32, D::kInt64}) {
    for (const D dtype : {D::kFloat32, D::kFloat64}) {
      for (const int64_t count : {0, 1, 6, 3000}) {
        const Tensor values = Values(dtype, {count, 5}, 2), ids = Ids(id, count, 13);
        Tensor distinct(D::kInt64, {count}), sums(dtype, {count, 5});
        for (int64_t i = 0; i < count; ++i) SetValue(distinct, i, -1);
        int64_t next = 0;
        for (const auto& [number, sum] : SumsOf(ids, values)) {
          SetValue(distinct, next, static_cast<double>(number));
          for (int64_t c = 0; c < 5; ++c) SetValue(sums, next * 5 + c, sum[static_cast<size_t>(c)]);
          ++next;
        }
        Check({"DeduplicateIndexedSlices", {}, {ids, values}, {distinct, sums}, 1e-4});
      }
    }
  }
}

TEST(DeduplicateIndexedSlices, SortsIdsOfAnySize) {
  const Tensor ids = Tensor::Of<int64_t>({5}, {int64_t{1} << 50, 3000, 0, int64_t{1} << 50, 5});
  const Tensor values = Tensor::Of<float>({5, 1}, {1, 2, 4, 8, 16});
  const Tensor distinct = Tensor::Of<int64_t>({5}, {0, 5, 3000, int64_t{1} << 50, -1});
  Check({"DeduplicateIndexedSlices",
         {},
         {ids, values},
         {distinct, Tensor::Of<float>({5, 1}, {4, 16, 2, 9, 0})}});
}

TEST(UnsortedSegmentSum, AddsRowsToTheSegmentsOfTheirIds) {
  for (const D dtype : {D::kFloat32, D::kFloat64}) {
    for (const int64_t count : {0, 6, 3000}) {
      const Tensor values = Values(dtype, {count, 5}, 2), ids = Ids(D::kInt64, count, 13);
      Tensor sums(dtype, {20, 5});
      for (const auto& [row, sum] : SumsOf(ids, values)) {
        for (int64_t c = 0; c < 5; ++c) SetValue(sums, row * 5 + c, sum[static_cast<size_t>(c)]);
      }
      Check({"UnsortedSegmentSum", {}, {values, ids}, {sums}, 1e-4});
    }
  }
}

TEST(GatherKernels, RefuseOperandsThatDoNotFit) {
  const auto f = [](Shape shape) { return Operand::Dense(D::kFloat32, std::move(shape)); };
  const auto ids = [](int64_t n) { return Operand::Dense(D::kInt64, {n}); };
  EXPECT_EQ(PrepareError("Gather", {}, {f({3, 2}), ids(4)}, {f({4, 2})}), OkStatus());
  EXPECT_NE(PrepareError("Gather", {}, {f({3, 2}), ids(4)}, {f({4, 3})}), OkStatus());
  EXPECT_NE(PrepareError("Gather", {}, {f({3, 2}), ids(3)}, {f({4, 2})}), OkStatus());
  EXPECT_NE(PrepareError("Gather", {}, {f({3, 2}), f({4})}, {f({4, 2})}), OkStatus());
  EXPECT_NE(PrepareError("Gather", {}, {f({6}), ids(4)}, {f({4, 2})}), OkStatus());
  EXPECT_NE(PrepareError("UnsortedSegmentSum", {}, {f({4, 2}), ids(4)}, {f({3, 1})}), OkStatus());
  EXPECT_NE(PrepareError("DeduplicateIndexedSlices", {}, {ids(4), f({4, 2})}, {ids(4), f({3, 2})}),
            OkStatus());
}

}  // namespace
}  // namespace tfjob::kernels::cpu
