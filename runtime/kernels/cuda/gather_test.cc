// Compares the kernels for tables, which gather rows and sum the gradients of equal rows, with
// those of the CPU.
#include <gtest/gtest.h>

#include <limits>
#include <string_view>
#include <vector>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/kernels/cuda/emulator/memory.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint64_t kSeeds = 12;

TEST(CudaGather, CopiesRows) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(GatherCases(seed), seed);
}

TEST(CudaGather, AddsTheRowsOfEqualIds) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(SumOfEqualIdsCases(seed), seed);
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

// The rows that Gather returned, and its record of refusals.
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
        wrong[999] = -7;  // another wrong id, after the first one
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
