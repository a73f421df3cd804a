// Compares every kernel of the table with the corresponding kernel for CPUs, on shapes that are
// drawn from seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint64_t kSeeds = 12;

TEST(CudaKernels, ElementwiseOpsWithOneInput) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(UnaryCases(seed), seed);
}

TEST(CudaKernels, SineAndCosineOfLargeNumbers) {
  for (const char* op : {"Sin", "Cos"})
    Compare({op, {}, {{Shape({1000}), DType::kFloat32, -1e4, 1e4}}, {{Shape({1000})}}}, 1);
}

TEST(CudaKernels, ElementwiseOpsWithTwoInputs) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(BinaryCases(seed), seed);
}

TEST(CudaKernels, BroadcastsTheLastDimensionTheOthersAndScalars) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(BroadcastCases(seed), seed);
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
    CompareAll(ProgramCases(seed), seed);
    CompareAll(MixedProgramCases(seed), seed);
  }
}

// Returns a program of 24 steps, whose operands are drawn from the inputs and all earlier results.
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
  // This program keeps as many results as possible: it computes 16 results, and each later step
  // uses two of them.
  std::string program = "Mul i0 0";
  for (int i = 1; i < 16; ++i) program += StrCat("; Mul i0 ", i);
  for (int i = 0; i < 7; ++i)
    program += StrCat("; ClipByValue t", 15 + i, " t", 2 * i, " t", 2 * i + 1);
  program += "; Add t22 t14";
  Compare({"FusedElementwise", {{"program", program}}, {{Shape({300})}}, {{Shape({300})}}}, 1);
}

TEST(CudaKernels, CopiesOfAllTypes) {
  for (uint64_t seed = 0; seed < 4; ++seed) CompareAll(CopyCases(seed), seed);
}

TEST(CudaKernels, AreAllNamed) {
  std::set<std::string> named(KernelNames().begin(), KernelNames().end()), linked;
  for (const Entry* entry : AllEntries()) linked.insert(entry->name);
  EXPECT_EQ(named, linked);
}

TEST(CudaKernels, AreInAFamilyOfCases) {
  std::set<std::string> compared;
  for (const CaseFamily& family : CaseFamilies())
    for (const auto cases : family.cases)
      for (uint64_t seed = 0; seed < 2; ++seed)
        for (const Comparison& comparison : cases(seed)) compared.insert(comparison.op);
  const KernelTable table = MakeTable(EmulatedGpu(0));
  for (const auto& [op, entry] : table.entries()) {
    EXPECT_TRUE(compared.contains(op)) << op;
  }
}

// Const needs no kernel, because programs store constants before they run.
TEST(CudaKernels, ExistForEveryOp) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  for (const auto& [op, entry] : CpuKernels().entries())
    EXPECT_EQ(table.Find(op) != nullptr, op != "Const") << op;
}

TEST(CudaKernels, SumsOverTheFirstAndTheLastAxes) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(SumCases(seed), seed);
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
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(SoftmaxCases(seed), seed);
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

TEST(CudaKernels, SparseCrossEntropy) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(SparseCrossEntropyCases(seed), seed);
}

TEST(CudaKernels, DenseCrossEntropy) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(DenseCrossEntropyCases(seed), seed);
}

TEST(CudaKernels, DropoutAndRandomNumbers) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(RandomNumberCases(seed), seed);
}

TEST(CudaKernels, CastsBetweenAllTypes) {
  for (const Comparison& cast : CastCases(0)) EXPECT_EQ(FirstReport(cast, 1, EmulatedGpu(1)), "");
}

// The subnormal numbers of float16 are normal numbers in float32, so they do not count as zero.
// Those of bfloat16 are subnormal in float32, too, but a cast must keep them.
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
