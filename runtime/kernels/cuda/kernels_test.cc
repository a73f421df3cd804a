// Compares every kernel of the table with the one for CPUs, on shapes that are drawn from seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint64_t kSeeds = 12;

int64_t Draw(PhiloxStream& random, std::initializer_list<int64_t> sizes) {
  return sizes.begin()[random.Below(static_cast<uint32_t>(sizes.size()))];
}

// Returns a shape of up to 20,000 elements. Some shapes are empty, have one element, have an odd
// number of elements, or have about the size of a warp or a block.
Shape DrawShape(PhiloxStream& random) {
  const int64_t rows = Draw(random, {1, 2, 5, 17, 31}),
                cols = Draw(random, {1, 3, 31, 32, 33, 257});
  switch (random.Below(6)) {
    case 0:
      return Shape({});
    case 1:
      return Shape({0, 3});
    case 2:
      return Shape({Draw(random, {1, 255, 256, 257, 5000})});
    case 3:
      return Shape({3, rows, cols});
    default:
      return Shape({rows, cols});
  }
}

Shape DrawMatrix(PhiloxStream& random) {
  return Shape({Draw(random, {1, 2, 5, 17, 31}), Draw(random, {1, 3, 31, 32, 33, 127, 129, 1000})});
}

TEST(CudaKernels, ElementwiseOpsWithOneInput) {
  for (const char* op : {"Neg", "Abs", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Erf", "Sin", "Cos",
                         "Relu", "Sigmoid", "Tanh", "ClipByValue"}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      PhiloxStream random(seed);
      const Shape shape = DrawShape(random);
      Attributes attributes;
      if (std::string_view(op) == "ClipByValue")
        attributes = {{"clip_value_min", -1.25}, {"clip_value_max", 0.1}};
      // Roots and logarithms of negative numbers are NaN.
      Compare({op, attributes, {{shape, DType::kFloat32, -1, 5, true}}, {{shape}}}, seed);
    }
  }
}

TEST(CudaKernels, SineAndCosineOfLargeNumbers) {
  for (const char* op : {"Sin", "Cos"})
    Compare({op, {}, {{Shape({1000}), DType::kFloat32, -1e4, 1e4}}, {{Shape({1000})}}}, 1);
}

TEST(CudaKernels, ElementwiseOpsWithTwoInputs) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow", "ReluGrad",
                         "SigmoidGrad", "TanhGrad"}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      PhiloxStream random(seed);
      const Shape shape = DrawShape(random);
      Compare({op, {}, {{shape, DType::kFloat32, 0.5, 3, true}, {shape}}, {{shape}}, 4e-6}, seed);
    }
  }
}

TEST(CudaKernels, BroadcastsTheLastDimensionTheOthersAndScalars) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    PhiloxStream random(seed);
    const Shape shape = DrawMatrix(random);
    Compare({"Sub", {}, {{shape}, {Shape({shape.dim(1)})}}, {{shape}}}, seed);
    Compare({"Sub", {}, {{Shape({})}, {shape}}, {{shape}}}, seed);
    Compare({"Sub", {}, {{Shape({shape.dim(0), 1})}, {shape}}, {{shape}}}, seed);
    for (const Shape& from : {Shape({shape.dim(0), 1}), Shape({shape.dim(1)}), Shape({})})
      Compare({"BroadcastTo", {}, {{from}}, {{shape}}}, seed);
    Compare({"BiasAdd", {}, {{shape}, {Shape({shape.dim(1)})}}, {{shape}}}, seed);
  }
}

// Both devices must treat subnormal numbers as zero, even if the sum of two of them is a normal
// number.
TEST(CudaKernels, SubnormalNumbersCountAsZero) {
  const RandomOperand subnormal{Shape({300}), DType::kFloat32, 1e-39, 1.1e-38};
  const RandomOperand large{Shape({300}), DType::kFloat32, 1e38, 2e38};
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Compare({"Mul", {}, {subnormal, large}, {{subnormal.shape}}}, seed);
    Compare({"Add", {}, {subnormal, subnormal}, {{subnormal.shape}}, 0, 0}, seed);
  }
}

TEST(CudaKernels, FusedPrograms) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    PhiloxStream random(seed);
    const Shape shape = DrawMatrix(random);
    const std::vector<RandomOperand> inputs = {{shape}, {Shape({shape.dim(1)})}, {Shape({})}};
    for (const char* program :
         {"Mul i0 0.5; Add t0 i1; Relu t1", "Sub i0 i2; Mul t0 t0; Maximum t1 i1; Tanh t2",
          "ClipByValue i0 -1 i2", "Minimum i0 inf; Sigmoid t0; SigmoidGrad t1 i1",
          "Mul i0 0.5; Add t0 i1; Sub t1 t0; Maximum t2 t1; Add t3 t0"}) {
      Compare({"FusedElementwise", {{"program", std::string(program)}}, inputs, {{shape}}}, seed);
    }
  }
}

// Returns a program of 24 steps, whose operands are any inputs and any earlier results.
std::string DrawProgram(PhiloxStream& random) {
  constexpr uint32_t kSteps = 24;
  std::string program;
  for (uint32_t step = 0; step < kSteps; ++step) {
    const auto operand = [&] {
      const uint32_t number = random.Below(step + 3);
      return number < step ? StrCat(" t", number) : StrCat(" i", number - step);
    };
    const char* const ops[] = {"Add", "Sub", "Maximum", "Minimum", "Neg", "ClipByValue"};
    const uint32_t op = random.Below(6);
    program += StrCat(step == 0 ? "" : "; ", ops[op], operand());
    if (op != 4) program += operand();
    if (op == 5) program += operand();
  }
  return program;
}

TEST(CudaKernels, ProgramsWhoseResultsAreNeededLater) {
  for (uint64_t seed = 0; seed < 4 * kSeeds; ++seed) {
    PhiloxStream random(seed);
    const Shape shape = DrawMatrix(random);
    const std::vector<RandomOperand> inputs = {{shape}, {Shape({shape.dim(1)})}, {Shape({})}};
    Compare({"FusedElementwise", {{"program", DrawProgram(random)}}, inputs, {{shape}}}, seed);
  }
  // This program keeps the most results: it computes 16, and each later step uses two of them.
  std::string program = "Mul i0 0";
  for (int i = 1; i < 16; ++i) program += StrCat("; Mul i0 ", i);
  for (int i = 0; i < 7; ++i)
    program += StrCat("; ClipByValue t", 15 + i, " t", 2 * i, " t", 2 * i + 1);
  program += "; Add t22 t14";
  Compare({"FusedElementwise", {{"program", program}}, {{Shape({300})}}, {{Shape({300})}}}, 1);
}

TEST(CudaKernels, CopiesOfAllTypes) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kBool}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      PhiloxStream random(seed);
      const RandomOperand matrix{DrawMatrix(random), dtype, 0, 100, true};
      const int64_t count = matrix.shape.num_elements();
      Compare({"Identity", {}, {matrix}, {matrix}, 0}, seed);
      Compare({"Assign", {}, {matrix, matrix}, {matrix}, 0}, seed);
      Compare({"Reshape", {}, {matrix}, {{Shape({count}), dtype}}, 0}, seed);
      Compare({"Reshape", {}, {{Shape({count}), dtype, 0, 100}}, {matrix}, 0}, seed);
    }
  }
  for (uint64_t seed = 0; seed < 4; ++seed) {
    PhiloxStream random(seed);
    const RandomOperand matrix{DrawMatrix(random)};
    Compare({"AssignAdd", {}, {matrix, matrix}, {matrix}}, seed);
  }
}

TEST(CudaKernels, AreAllNamed) {
  std::set<std::string> named(KernelNames().begin(), KernelNames().end()), linked;
  for (const Entry* entry : AllEntries()) linked.insert(entry->name);
  EXPECT_EQ(named, linked);
}

// Const needs no kernel, because programs store constants before they run.
TEST(CudaKernels, ExistForEveryOp) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  for (const auto& [op, entry] : CpuKernels().entries())
    EXPECT_EQ(table.Find(op) != nullptr, op != "Const") << op;
}

TEST(CudaKernels, SumsOverTheFirstAndTheLastAxes) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    PhiloxStream random(seed);
    const int64_t rows = Draw(random, {1, 7, 255, 256, 257, 1500});
    const int64_t cols = Draw(random, {1, 5, 31, 32, 33, 70});
    const RandomOperand matrix{Shape({rows, cols}), DType::kFloat32, 0, 1};  // no cancellation
    Compare({"BiasAddGrad", {}, {matrix}, {{Shape({cols})}}, 2e-5}, seed);
    for (const char* op : {"Sum", "Mean"}) {
      const auto axes = [](int64_t axis) {
        return Attributes{{"axes", std::vector<int64_t>{axis}}};
      };
      Compare({op, axes(0), {matrix}, {{Shape({cols})}}, 2e-5}, seed);
      Compare({op, axes(1), {matrix}, {{Shape({rows})}}, 2e-5}, seed);
    }
  }
}

TEST(CudaKernels, SumsOverSeveralAxes) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    PhiloxStream random(seed);
    const int64_t rows = Draw(random, {1, 7, 33, 257}), cols = Draw(random, {1, 5, 32, 70});
    const RandomOperand matrix{Shape({rows, cols}), DType::kFloat32, 0, 1};
    const RandomOperand tensor{Shape({3, rows, cols}), DType::kFloat32, 0, 1};
    for (const char* op : {"Sum", "Mean"}) {
      const auto axes = [](int64_t first, int64_t second) {
        return Attributes{{"axes", std::vector<int64_t>{first, second}}};
      };
      Compare({op, {}, {matrix}, {{Shape({})}}, 2e-5}, seed);
      Compare({op, {}, {tensor}, {{Shape({})}}, 2e-5}, seed);
      Compare({op, axes(0, 1), {tensor}, {{Shape({cols})}}, 2e-5}, seed);
      Compare({op, axes(1, 2), {tensor}, {{Shape({3})}}, 2e-5}, seed);
    }
  }
}

TEST(CudaKernels, SumsInParts) {
  const RandomOperand row{Shape({20000}), DType::kFloat32, 0, 1};
  const RandomOperand column{Shape({70000, 1}), DType::kFloat32, 0, 1};
  const RandomOperand matrix{Shape({9000, 2}), DType::kFloat32, 0, 1};
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Compare({"Mean", {}, {row}, {{Shape({})}}, 1e-5}, seed);
    Compare({"BiasAddGrad", {}, {column}, {{Shape({1})}}, 1e-5}, seed);
    Compare({"Sum", {}, {matrix}, {{Shape({})}}, 1e-5}, seed);
    const Attributes last = {{"axes", std::vector<int64_t>{1}}};
    for (const int64_t cols : {1024, 1025, 8192, 9000}) {
      const RandomOperand rows{Shape({9, cols}), DType::kFloat32, 0, 1};
      Compare({"Sum", last, {rows}, {{Shape({9})}}, 1e-5}, seed);
    }
  }
}

TEST(CudaKernels, Softmax) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    PhiloxStream random(seed);
    const RandomOperand matrix{DrawMatrix(random), DType::kFloat32, -20, 20};
    // Most outputs are far below 1, so a small floor keeps the comparison relative.
    Compare({"Softmax", {}, {matrix}, {{matrix.shape}}, 1e-5, 1e-30}, seed);
    Compare({"LogSoftmax", {}, {matrix}, {{matrix.shape}}}, seed);
    RandomOperand special = matrix;
    special.special = true;
    for (const char* op : {"Softmax", "LogSoftmax"})
      Compare({op, {}, {special}, {{matrix.shape}}, 1e-5, 1e-30}, seed);
    const RandomOperand small{matrix.shape, DType::kFloat32, -1, 1};
    Compare({"SoftmaxGrad", {}, {small, small}, {{matrix.shape}}, 2e-5}, seed);
  }
}

TEST(CudaKernels, RowsWithoutElements) {
  const RandomOperand matrix{Shape({3, 0})}, rows{Shape({3})};
  const RandomOperand labels{Shape({3}), DType::kInt64, 0, 1};
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Compare({"SparseSoftmaxCrossEntropyWithLogits", {}, {matrix, labels}, {rows, matrix}}, seed);
    Compare({"Softmax", {}, {matrix}, {matrix}}, seed);
    Compare({"SoftmaxGrad", {}, {matrix, matrix}, {matrix}}, seed);
  }
}

// A label outside the range of the classes makes its row NaN.
TEST(CudaKernels, SparseCrossEntropy) {
  for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kUInt8}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      PhiloxStream random(seed);
      const Shape shape = DrawMatrix(random);
      const Shape rows({shape.dim(0)});
      const double least = dtype == DType::kUInt8 ? 0 : -2;
      const double most = static_cast<double>(std::min<int64_t>(shape.dim(1) + 1, 255));
      for (const bool special : {false, true}) {
        Compare({"SparseSoftmaxCrossEntropyWithLogits",
                 {},
                 {{shape, DType::kFloat32, -10, 10, special}, {rows, dtype, least, most}},
                 {{rows}, {shape}},
                 4e-6},
                seed);
      }
    }
  }
}

TEST(CudaKernels, DenseCrossEntropy) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    PhiloxStream random(seed);
    const Shape shape = DrawMatrix(random);
    const Shape rows({shape.dim(0)});
    // The labels of a row need not sum to 1.
    const RandomOperand labels{shape, DType::kFloat32, 0, 2.0 / static_cast<double>(shape.dim(1))};
    for (const bool special : {false, true}) {
      Compare({"SoftmaxCrossEntropyWithLogits",
               {},
               {{shape, DType::kFloat32, -10, 10, special}, labels},
               {{rows}, {shape}},
               1e-5},
              seed);
    }
  }
}

// The random words must be equal bit for bit, and Dropout must keep the same elements.
TEST(CudaKernels, DropoutAndRandomNumbers) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    PhiloxStream random(seed);
    const Shape shape = DrawShape(random);
    const RandomOperand number{Shape({}), DType::kInt64, 0, 1e9};
    const RandomOperand large{Shape({}), DType::kInt64, -9e18, 9e18};
    const Attributes words = {{"op_id", int64_t{7}}, {"replica", int64_t{3}}};
    Attributes dropout = words, uniform = words;
    dropout.Set("rate", 0.3);
    uniform.Set("minval", -2.0);
    uniform.Set("maxval", 5.0);
    for (const char* op : {"Dropout", "DropoutGrad"})
      Compare({op, dropout, {{shape}, number, large}, {{shape}}, 0}, seed);
    Compare({"RandomUniform", uniform, {number, large}, {{shape}}, 1e-7}, seed);
    Attributes normal = words;
    normal.Set("mean", 0.5);
    normal.Set("stddev", 3.0);
    for (const char* op : {"RandomNormal", "TruncatedNormal"})
      Compare({op, normal, {number, large}, {{shape}}, 1e-6}, seed);
  }
}

TEST(CudaKernels, CastsBetweenAllTypes) {
  const DType types[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,    DType::kInt64,
                         DType::kUInt8,   DType::kBool,    DType::kBFloat16, DType::kFloat16};
  const auto compare = [](const RandomOperand& from, DType to, uint64_t seed) {
    const double tolerance = IsHalf(to) ? 0 : 1e-7;
    const Comparison cast{"Cast", {}, {from}, {{from.shape, to}}, tolerance};
    EXPECT_EQ(FirstReport(cast, seed, EmulatedGpu(seed)), "");
  };
  uint64_t seed = 0;
  for (const DType from : types) {
    for (const DType to : types) {
      for (const double high : {3.0, 250.0}) {
        PhiloxStream random(++seed);
        const Shape shape = DrawShape(random);
        const double low = from == DType::kUInt8 ? 0 : -high;
        compare({shape, from, low, high}, to, seed);
      }
      // The values exceed the range of integers.
      if (from == DType::kFloat32 || from == DType::kFloat64 || IsHalf(from))
        compare({Shape({400}), from, -1e20, 1e20, true}, to, seed);
    }
  }
}

// Subnormal numbers of the half types are not zero in float32, or are kept by a cast.
TEST(CudaKernels, CastsOfSmallNumbers) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const auto& [half, most] : {std::pair(DType::kBFloat16, 3e-38), {DType::kFloat16, 2e-4}}) {
      const Shape shape({seed % 2 == 0 ? 1000 : 999});
      const RandomOperand small{shape, DType::kFloat32, -most, most};
      EXPECT_EQ(FirstReport({"Cast", {}, {small}, {{shape, half}}, 0, 0}, seed, EmulatedGpu(seed)),
                "");
      const RandomOperand halves{shape, half, -most, most};
      EXPECT_EQ(FirstReport({"Cast", {}, {halves}, {{shape}}, 0, 0}, seed, EmulatedGpu(seed)), "");
    }
  }
}

TEST(CudaKernels, RefuseTwoFloatTypesInOneOp) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  const auto square = [](DType dtype) { return Operand::Dense(dtype, Shape({2, 2})); };
  const Operand half = square(DType::kFloat16), brain = square(DType::kBFloat16),
                wide = square(DType::kFloat32);
  for (const char* op : {"Add", "MatMul", "SoftmaxGrad", "Maximum"}) {
    for (const Operand& other : {brain, wide}) {
      for (const KernelRequest& request : {KernelRequest{op, {}, {half, other}, {half}},
                                           KernelRequest{op, {}, {half, half}, {other}}}) {
        const Status status = table.Prepare(request).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
        EXPECT_NE(std::string(Message(status)).find("float16"), std::string::npos) << status;
      }
    }
  }
}

TEST(CudaKernels, RefuseVariablesOfHalfTypes) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  const Operand step = Operand::Dense(DType::kInt64, Shape({}));
  const Operand half = Operand::Dense(DType::kBFloat16, Shape({2, 3}));
  const Status status =
      table
          .Prepare(
              {"ApplyOptimizer", ToAttributes(optimizer::Optimizer()), {step, half, half}, {half}})
          .status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status;
  EXPECT_TRUE(std::string(Message(status)).ends_with("no kernel for dtype bfloat16")) << status;
}

TEST(CudaKernels, RefusesWhatTheKernelsCannotCompute) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  const auto prepare = [&table](const std::string& op, Attributes attributes,
                                std::vector<Operand> inputs, std::vector<Operand> outputs) {
    return table.Prepare({op, std::move(attributes), std::move(inputs), std::move(outputs)})
        .status();
  };
  const Operand matrix = Operand::Dense(DType::kFloat32, Shape({2, 3}));
  const Operand doubles = Operand::Dense(DType::kFloat64, Shape({2, 3}));
  EXPECT_EQ(Message(prepare("Exp", {}, {doubles}, {doubles})),
            "device CUDA: Exp(float64[2,3]) -> float64[2,3]: no kernel for dtype float64");
  EXPECT_EQ(prepare("Conv9D", {}, {matrix}, {matrix}).code(), StatusCode::kUnimplemented);
  const Operand row = Operand::Dense(DType::kFloat32, Shape({2}));
  EXPECT_EQ(prepare("Add", {}, {matrix, row}, {matrix}).code(), StatusCode::kInvalidArgument);
  const Operand huge = Operand::Dense(DType::kFloat32, Shape({int64_t{1} << 31}));
  EXPECT_EQ(prepare("Exp", {}, {huge}, {huge}).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(prepare("FusedElementwise", {{"program", std::string("Add i0 i3")}}, {matrix}, {matrix})
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(prepare("FusedElementwise", {{"program", std::string("")}}, {matrix}, {matrix}).code(),
            StatusCode::kInvalidArgument);
  // The results of 18 steps are kept until one of six further steps needs them.
  std::string crowded;
  for (int i = 0; i < 18; ++i) crowded += "Neg i0;";
  for (int i = 0; i < 18; i += 3)
    crowded += StrCat("ClipByValue t", i, " t", i + 1, " t", i + 2, ";");
  EXPECT_EQ(prepare("FusedElementwise", {{"program", crowded}}, {matrix}, {matrix}).code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(prepare("Sum", {{"axes", std::vector<int64_t>{0}}}, {matrix}, {row}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(
      prepare("ClipByValue", {{"clip_value_min", 1.0}, {"clip_value_max", 0.0}}, {matrix}, {matrix})
          .code(),
      StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
