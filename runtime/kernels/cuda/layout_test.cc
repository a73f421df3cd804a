// Compares the kernels that move, compare and select elements, and the reductions over any axes,
// with those of the CPU.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint64_t kSeeds = 16;
constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                            DType::kInt64,   DType::kUInt8,   DType::kBool};

TEST(CudaLayout, Transpose) {
  for (uint64_t seed = 0; seed < 4 * kSeeds; ++seed) CompareAll(TransposeCases(seed), seed);
  // The rows of the output have one element each and are padded, so neighbouring elements of the
  // input are not neighbours in the output.
  const RandomOperand wide{Shape({1, 4, 5}), DType::kFloat32, 0, 100, false, false, 5};
  const RandomOperand narrow{Shape({5, 4, 1}), DType::kFloat32, 0, 100, false, false, 3};
  Compare({"Transpose", {}, {wide}, {narrow}, 0}, 1);
  // If the attribute is absent, the axes are reversed.
  for (const DType dtype : kTypes)
    Compare({"Transpose", {}, {{Shape({70, 41}), dtype, 0, 100}}, {{Shape({41, 70}), dtype}}, 0},
            1);
  EXPECT_NE(FirstReport({"Transpose",
                         {{"perm", std::vector<int64_t>{0, 0}}},
                         {{Shape({2, 2})}},
                         {{Shape({2, 2})}}},
                        1, EmulatedGpu(1)),
            "");
}

TEST(CudaLayout, ConcatAndSlice) {
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) CompareAll(ConcatAndSliceCases(seed), seed);
}

TEST(CudaLayout, Pad) {
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) CompareAll(PadCases(seed), seed);
}

TEST(CudaLayout, Fill) {
  for (uint64_t seed = 0; seed < 4; ++seed) CompareAll(FillCases(seed), seed);
  Compare({"Fill", {{"value", -2.5}}, {}, {{Shape({300})}}, 0}, 1);
  Compare({"Fill", {{"value", -7.0}}, {}, {{Shape({300}), DType::kInt64}}, 0}, 1);
}

TEST(CudaLayout, BroadcastsToAnyShape) {
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) CompareAll(AnyBroadcastCases(seed), seed);
  // Both inputs are broadcast.
  const RandomOperand column{Shape({3, 1, 5, 1})}, row{Shape({1, 4, 1, 6})};
  for (uint64_t seed = 0; seed < 3; ++seed)
    Compare({"Div", {}, {column, row}, {{Shape({3, 4, 5, 6})}}, 4e-6}, seed);
}

TEST(CudaSelect, Comparisons) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(CompareCases(seed), seed);
}

TEST(CudaSelect, Select) {
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) CompareAll(SelectCases(seed), seed);
}

TEST(CudaSelect, ArgMax) {
  for (uint64_t seed = 0; seed < 4 * kSeeds; ++seed) CompareAll(ArgMaxCases(seed), seed);
}

TEST(CudaSelect, ArgMaxRefusesMoreDimensionsThanLoopsHave) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  const std::vector<int64_t> dims(9, 2), rest(8, 2);
  for (const int64_t axis : {0, 8}) {
    EXPECT_EQ(table
                  .Prepare({"ArgMax",
                            {{"axis", axis}},
                            {Operand::Dense(DType::kFloat32, Shape(dims))},
                            {Operand::Dense(DType::kInt64, Shape(rest))}})
                  .status()
                  .code(),
              absl::StatusCode::kUnimplemented)
        << axis;
  }
}

TEST(CudaReduce, ReducesOverAnyAxes) {
  for (uint64_t seed = 0; seed < 3 * kSeeds; ++seed) CompareAll(ReductionCases(seed), seed);
}

TEST(CudaReduce, RefusesOutputsOfAnotherShape) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  const auto prepare = [&table](const Shape& out, bool keep) {
    return table.Prepare({"Sum",
                          {{"axes", std::vector<int64_t>{0}}, {"keep_dims", keep}},
                          {Operand::Dense(DType::kFloat32, Shape({3, 2, 2}))},
                          {Operand::Dense(DType::kFloat32, out)}});
  };
  EXPECT_TRUE(prepare(Shape({2, 2}), false).ok());
  EXPECT_TRUE(prepare(Shape({1, 2, 2}), true).ok());
  for (const Shape& shape : {Shape({4}), Shape({4, 1}), Shape({1, 2, 2})})
    EXPECT_FALSE(prepare(shape, false).ok()) << shape.ToString();
  EXPECT_FALSE(prepare(Shape({2, 2}), true).ok());
}

// Checks that the grids for reductions of the largest tensors stay within CUDA's limits.
TEST(CudaReduce, ReducesTheLargestTensors) {
  GpuAccess gpu = EmulatedGpu(0);
  std::vector<Grid> grids;
  gpu.launcher = [&grids](const LaunchRequest& launch, Stream&) { grids.push_back(launch.grid); };
  const KernelTable table = MakeTable(gpu);
  const auto run = [&](const char* op, int64_t axis, const Shape& in, const Shape& out) {
    const auto kernel = table.Prepare({op,
                                       {{"axes", std::vector<int64_t>{axis}}},
                                       {Operand::Dense(DType::kFloat32, in)},
                                       {Operand::Dense(DType::kFloat32, out)}});
    if (!kernel.ok()) return kernel.status();
    std::byte space[64];  // never accessed
    const void* const input = space;
    void* const output = space;
    Stream stream;
    (*kernel)->Run(&input, &output, space, stream);
    return OkStatus();
  };
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  EXPECT_EQ(run("Sum", 0, Shape({kMost}), Shape({})), OkStatus());
  EXPECT_EQ(run("Sum", 0, Shape({kMost, 1}), Shape({1})), OkStatus());
  EXPECT_EQ(run("Sum", 1, Shape({kMost, 1}), Shape({kMost})), OkStatus());
  EXPECT_EQ(run("Sum", 1, Shape({1, kMost}), Shape({1})), OkStatus());
  EXPECT_EQ(run("BiasAddGrad", 0, Shape({kMost / 3, 3}), Shape({3})), OkStatus());
  EXPECT_EQ(run("Sum", 0, Shape({kMost + 1}), Shape({})).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(run("BiasAddGrad", 0, Shape({kMost / 3 + 1, 3}), Shape({3})).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_GE(grids.size(), 10U);
  for (const Grid& grid : grids) {
    EXPECT_TRUE(grid.x >= 1 && grid.x <= kMost) << grid.x;
    EXPECT_TRUE(grid.y == 1 && grid.z == 1) << grid.y << ", " << grid.z;
  }
}

}  // namespace
}  // namespace tfjob::kernels::cuda
