// Compares the kernels that move, compare and choose elements, and the reductions over any axes,
// with the kernels for CPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint64_t kSeeds = 16;
constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                            DType::kInt64,   DType::kUInt8,   DType::kBool};

DType DrawType(PhiloxStream& random) {
  return kTypes[random.Below(6)];
}

// Returns dimensions, some of which are 1, odd, or about the size of a warp or a tile. Rarely, one
// of them is 0. There are at most about `most` elements.
std::vector<int64_t> DrawDims(PhiloxStream& random, size_t rank, int64_t most = 20000) {
  constexpr int64_t kSizes[] = {1, 2, 3, 7, 31, 32, 33, 65};
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = kSizes[random.Below(8)];
    dims.push_back(count * size > most ? 2 : size);
    count *= dims.back();
  }
  if (rank > 0 && random.Below(12) == 0) dims[random.Below(static_cast<uint32_t>(rank))] = 0;
  return dims;
}

std::vector<int64_t> DrawOrder(PhiloxStream& random, size_t count) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < count; ++i)
    order.insert(order.begin() + random.Below(static_cast<uint32_t>(i + 1)),
                 static_cast<int64_t>(i));
  return order;
}

TEST(CudaLayout, Transpose) {
  for (uint64_t seed = 0; seed < 4 * kSeeds; ++seed) {
    PhiloxStream random(seed);
    const DType dtype = DrawType(random);
    const std::vector<int64_t> dims = DrawDims(random, random.Below(5));
    const std::vector<int64_t> perm = DrawOrder(random, dims.size());
    std::vector<int64_t> permuted;
    for (const int64_t axis : perm) permuted.push_back(dims[static_cast<size_t>(axis)]);
    Compare({"Transpose",
             {{"perm", perm}},
             {{Shape(dims), dtype, 0, 100}},
             {{Shape(permuted), dtype}},
             0},
            seed);
  }
  // The last dimension of the output is 1, so neighbours in the input are not neighbours in the
  // output, whose rows are padded.
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
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
    PhiloxStream random(seed);
    const DType dtype = DrawType(random);
    const std::vector<int64_t> dims = DrawDims(random, 1 + random.Below(4));
    const size_t axis = random.Below(static_cast<uint32_t>(dims.size()));
    std::vector<RandomOperand> inputs;
    std::vector<int64_t> joined = dims;
    joined[axis] = 0;
    for (uint32_t i = 0; i < 1 + random.Below(4); ++i) {
      std::vector<int64_t> part = dims;
      part[axis] = random.Below(5);
      joined[axis] += part[axis];
      inputs.push_back({Shape(part), dtype, 0, 100});
    }
    const auto along = static_cast<int64_t>(axis);
    Compare({"Concat", {{"axis", along}}, inputs, {{Shape(joined), dtype}}, 0}, seed);
    std::vector<int64_t> begin, size;
    for (const int64_t dim : dims) {
      begin.push_back(random.Below(static_cast<uint32_t>(dim + 1)));
      size.push_back(random.Below(static_cast<uint32_t>(dim - begin.back() + 1)));
    }
    const RandomOperand whole{Shape(dims), dtype, 0, 100};
    Compare({"Slice", {{"begin", begin}}, {whole}, {{Shape(size), dtype}}, 0}, seed);
  }
}

TEST(CudaLayout, Pad) {
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
    PhiloxStream random(seed);
    const DType dtype = DrawType(random);
    const std::vector<int64_t> dims = DrawDims(random, random.Below(4));
    std::vector<int64_t> before, padded;
    for (const int64_t dim : dims) {
      before.push_back(random.Below(3));
      padded.push_back(before.back() + dim + random.Below(3));
    }
    Compare(
        {"Pad", {{"before", before}}, {{Shape(dims), dtype, 1, 100}}, {{Shape(padded), dtype}}, 0},
        seed);
  }
}

TEST(CudaLayout, Fill) {
  for (const DType dtype : kTypes) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      PhiloxStream random(seed);
      Compare({"Fill", {{"value", 1.0}}, {}, {{Shape(DrawDims(random, 2)), dtype}}, 0}, seed);
    }
  }
  Compare({"Fill", {{"value", -2.5}}, {}, {{Shape({300})}}, 0}, 1);
  Compare({"Fill", {{"value", -7.0}}, {}, {{Shape({300}), DType::kInt64}}, 0}, 1);
}

// Returns a shape that broadcasts to the given one.
Shape DrawRepeated(PhiloxStream& random, const std::vector<int64_t>& dims) {
  const uint32_t missing = random.Below(static_cast<uint32_t>(dims.size() + 1));
  std::vector<int64_t> repeated(dims.begin() + missing, dims.end());
  for (int64_t& dim : repeated) dim = random.Below(2) == 0 ? 1 : dim;
  return Shape(repeated);
}

TEST(CudaLayout, BroadcastsToAnyShape) {
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
    PhiloxStream random(seed);
    const std::vector<int64_t> dims = DrawDims(random, random.Below(5));
    const DType dtype = DrawType(random);
    const Shape a = DrawRepeated(random, dims), b = DrawRepeated(random, dims);
    Compare({"BroadcastTo", {}, {{a, dtype, 0, 100}}, {{Shape(dims), dtype}}, 0}, seed);
    // One of the inputs has the output's shape, so that the result has it, too.
    Compare({"Sub", {}, {{a}, {Shape(dims)}}, {{Shape(dims)}}}, seed);
    Compare({"Mul", {}, {{Shape(dims)}, {b}}, {{Shape(dims)}}}, seed);
  }
  // Both inputs are broadcast.
  const RandomOperand column{Shape({3, 1, 5, 1})}, row{Shape({1, 4, 1, 6})};
  for (uint64_t seed = 0; seed < 3; ++seed)
    Compare({"Div", {}, {column, row}, {{Shape({3, 4, 5, 6})}}, 4e-6}, seed);
}

TEST(CudaSelect, Comparisons) {
  for (const char* op : {"Equal", "Greater", "GreaterEqual", "Less"}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      PhiloxStream random(seed);
      const std::vector<int64_t> dims = DrawDims(random, random.Below(4));
      const DType dtype = DrawType(random);
      if (dtype == DType::kBool && std::string_view(op) != "Equal") continue;
      const double low = dtype == DType::kUInt8 ? 0 : -2;
      // The range is small, so that some of the values are equal.
      const RandomOperand a{Shape(dims), dtype, low, 2, true};
      const RandomOperand b{DrawRepeated(random, dims), dtype, low, 2, true};
      Compare({op, {}, {a, b}, {{Shape(dims), DType::kBool}}, 0}, seed);
    }
  }
}

TEST(CudaSelect, Select) {
  for (uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
    PhiloxStream random(seed);
    const std::vector<int64_t> dims = DrawDims(random, random.Below(5));
    const DType dtype = DrawType(random);
    const RandomOperand condition{DrawRepeated(random, dims), DType::kBool};
    const RandomOperand a{Shape(dims), dtype, 0, 100}, b{DrawRepeated(random, dims), dtype, 0, 100};
    Compare({"Select", {}, {condition, a, b}, {{Shape(dims), dtype}}, 0}, seed);
    Compare({"Select", {}, {condition, b, a}, {{Shape(dims), dtype}}, 0}, seed);
  }
}

TEST(CudaSelect, ArgMax) {
  for (uint64_t seed = 0; seed < 4 * kSeeds; ++seed) {
    PhiloxStream random(seed);
    std::vector<int64_t> dims = DrawDims(random, 1 + random.Below(4));
    const size_t axis = random.Below(static_cast<uint32_t>(dims.size()));
    dims[axis] = std::max<int64_t>(dims[axis], 1);
    std::vector<int64_t> rest = dims;
    rest.erase(rest.begin() + static_cast<int64_t>(axis));
    // Some of the elements are NaN, infinite or equal.
    const RandomOperand input{Shape(dims), DType::kFloat32, -1, 1, seed % 2 == 0};
    Compare({"ArgMax",
             {{"axis", static_cast<int64_t>(axis)}},
             {input},
             {{Shape(rest), DType::kInt64}},
             0},
            seed);
    Compare({"ArgMax",
             {{"axis", static_cast<int64_t>(axis)}},
             {{Shape(dims), DType::kFloat32, 0, 0}},
             {{Shape(rest), DType::kInt64}},
             0},
            seed);
  }
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
  for (uint64_t seed = 0; seed < 3 * kSeeds; ++seed) {
    PhiloxStream random(seed);
    const std::vector<int64_t> dims = DrawDims(random, random.Below(5), 2500);
    std::vector<int64_t> axes, kept, ones;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const bool reduced = random.Below(2) == 0;
      if (reduced) axes.push_back(static_cast<int64_t>(axis));
      if (!reduced) kept.push_back(dims[axis]);
      ones.push_back(reduced ? 1 : dims[axis]);
    }
    const RandomOperand positive{Shape(dims), DType::kFloat32, 0, 1};  // no cancellation
    const RandomOperand special{Shape(dims), DType::kFloat32, -3, 3, true};
    const bool keep = random.Below(2) == 0;
    const Attributes attributes = {{"axes", axes}, {"keep_dims", keep}};
    const RandomOperand output{Shape(keep ? ones : kept)};
    for (const char* op : {"Sum", "Mean"})
      Compare({op, attributes, {positive}, {output}, 2e-5}, seed);
    for (const char* op : {"Max", "Min"}) {
      Compare({op, attributes, {positive}, {output}, 0}, seed);
      Compare({op, attributes, {special}, {output}, 0}, seed);
    }
  }
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

// The launches of reductions of the largest tensors stay within CUDA's limits for grids.
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
