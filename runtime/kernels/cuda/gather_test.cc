// Compares the kernels for tables with the kernels for CPUs: gathering rows, and adding the
// gradients of equal rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/kernels/cuda/emulator/memory.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint64_t kSeeds = 12;

int64_t Draw(PhiloxStream& random, std::initializer_list<int64_t> sizes) {
  return sizes.begin()[random.Below(static_cast<uint32_t>(sizes.size()))];
}

// Values that are read as integers lie in [low, high).
RandomOperand Ids(int64_t count, DType dtype, int64_t bound) {
  return {Shape({count}), dtype, 0, static_cast<double>(bound)};
}

TEST(CudaGather, CopiesRows) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt8}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      PhiloxStream random(seed);
      const int64_t rows = Draw(random, {1, 7, 100}), cols = Draw(random, {1, 3, 4, 16, 33, 64});
      const int64_t count = Draw(random, {0, 1, 31, 200});
      for (const DType ids : {DType::kInt32, DType::kInt64}) {
        Compare({"Gather",
                 {},
                 {{Shape({rows, cols}), dtype, 0, 100}, Ids(count, ids, rows)},
                 {{Shape({count, cols}), dtype}},
                 0},
                seed);
      }
    }
  }
}

// The numbers of ids are near the sizes of the parts that are sorted, numbered and added.
TEST(CudaGather, AddsTheRowsOfEqualIds) {
  for (const int64_t count : {1, 2, 63, 64, 65, 200, 511, 512, 513, 1024, 1025, 2600}) {
    for (const int64_t distinct : {int64_t{1}, int64_t{2}, int64_t{40}, int64_t{100000}}) {
      PhiloxStream random(static_cast<uint64_t>(count + distinct));
      const int64_t cols = Draw(random, {1, 5, 32, 40});
      const DType dtype = random.Below(2) == 0 ? DType::kInt32 : DType::kInt64;
      const RandomOperand values{Shape({count, cols}), DType::kFloat32, 0, 1};  // no cancellation
      Compare({"DeduplicateIndexedSlices",
               {},
               {Ids(count, dtype, distinct), values},
               {{Shape({count}), DType::kInt64}, values},
               2e-5},
              static_cast<uint64_t>(count));
      const int64_t rows = std::min<int64_t>(distinct, 300);
      Compare({"UnsortedSegmentSum",
               {{"num_segments", rows}},
               {values, Ids(count, dtype, rows)},
               {{Shape({rows, cols})}},
               2e-5},
              static_cast<uint64_t>(count));
    }
  }
  for (const char* op : {"DeduplicateIndexedSlices", "UnsortedSegmentSum"}) {
    const bool sums = std::string_view(op) == "UnsortedSegmentSum";
    const RandomOperand none{Shape({0, 3})}, ids{Shape({0}), DType::kInt64};
    Compare({op,
             {{"num_segments", int64_t{5}}},
             sums ? std::vector{none, ids} : std::vector{ids, none},
             sums ? std::vector<RandomOperand>{{Shape({5, 3})}} : std::vector{ids, none}},
            1);
  }
}

TEST(CudaGather, SortsTheLargestIds) {
  const double most = 9.2e18;
  const RandomOperand ids{Shape({700}), DType::kInt64, most - 1e15, most};
  const RandomOperand values{Shape({700, 3})};
  Compare({"DeduplicateIndexedSlices",
           {},
           {ids, values},
           {{Shape({700}), DType::kInt64}, values},
           2e-5},
          1);
}

// Runs Gather with a record for refusals. Returns the record and the rows.
struct Gathered {
  Refusal refusal;
  Status status;
  std::vector<float> rows;
};
Gathered GatherWith(const std::vector<int64_t>& ids, Refusal refusal, uint64_t seed) {
  EmulatedMemory memory;
  const auto place = [&memory](const void* data, size_t bytes, const char* name) {
    std::byte* const address = memory.Allocate(bytes, name);
    EmulatedMemory::Write(address, data, bytes);
    return static_cast<void*>(address);
  };
  const std::vector<float> table = {1, 2, 3, 4, 5, 6};
  const auto count = static_cast<int64_t>(ids.size());
  const Operand out = Operand::Dense(DType::kFloat32, Shape({count, 2}));
  const auto kernel = MakeTable(EmulatedGpu(seed))
                          .Prepare({"Gather",
                                    {{"table", std::string("names")}},
                                    {Operand::Dense(DType::kFloat32, Shape({3, 2})),
                                     Operand::Dense(DType::kInt64, Shape({count}))},
                                    {out}});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  const void* const inputs[] = {place(table.data(), table.size() * 4, "table"),
                                place(ids.data(), ids.size() * 8, "ids")};
  void* const outputs[] = {memory.Allocate(out.bytes(), "rows")};
  auto* const record = static_cast<Refusal*>(place(&refusal, sizeof refusal, "refusal"));
  Stream stream;
  stream.set_refusal(record);
  stream.BeginStep(5);
  (*kernel)->Run(inputs, outputs, nullptr, stream);
  ExpectNoReports("Gather");
  const auto* const rows = static_cast<const float*>(outputs[0]);
  Gathered gathered{*record, OkStatus(), {rows, rows + 2 * count}};
  stream.Refuse(gathered.refusal);
  EXPECT_EQ(stream.failed_step(), stream.ok() ? 0 : 5);
  gathered.status = stream.TakeStatus();
  return gathered;
}

TEST(CudaGather, RefusesTheFirstIdThatIsNoRow) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<int64_t> ids(1000, 2);
    EXPECT_EQ(GatherWith(ids, {}, seed).status, OkStatus());
    for (const int64_t position : {0, 31, 32, 700}) {
      for (const int64_t bad : {int64_t{-1}, int64_t{3}, std::numeric_limits<int64_t>::max()}) {
        std::vector<int64_t> wrong = ids;
        wrong[static_cast<size_t>(position)] = bad;
        wrong[999] = -7;  // also wrong, but later
        const Gathered gathered = GatherWith(wrong, {}, seed);
        EXPECT_EQ(gathered.status,
                  InvalidArgument("id ", bad, " at position ", position,
                                  " of the batch is no row of names: expected 0 to 2"));
        EXPECT_EQ(gathered.rows[static_cast<size_t>(2 * position)], 0);
        EXPECT_EQ(gathered.rows[2 * 500], 5);
      }
    }
  }
}

TEST(CudaGather, KeepsTheRefusalOfAnEarlierKernel) {
  const Gathered gathered = GatherWith({0, 9}, {.number = 17, .position = 3, .value = 4}, 1);
  EXPECT_EQ(gathered.refusal.number, 17);
  EXPECT_EQ(gathered.refusal.position, 3);
  EXPECT_EQ(gathered.refusal.value, 4);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
