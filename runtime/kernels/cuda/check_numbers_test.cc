// Tests CheckNumerics, which refuses tensors that contain NaN or infinity.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/kernels/cuda/emulator/memory.h"

namespace tfjob::kernels::cuda {
namespace {

TEST(CudaCheckNumerics, CopiesFiniteNumbers) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    for (const Shape& shape : {Shape({}), Shape({0, 3}), Shape({31, 129}), Shape({5000})})
      Compare({"CheckNumerics", {}, {{shape}}, {{shape}}, 0}, seed);
  }
}

// Runs CheckNumerics on a matrix whose rows are padded by one element, and whose element with the
// dense index `element` is `value`. Returns the record of refusals.
Refusal CheckWith(int64_t rows, int64_t element, float value, Refusal refusal, uint64_t seed) {
  constexpr int64_t kCols = 100;
  EmulatedMemory memory;
  Operand matrix = Operand::Dense(DType::kFloat32, Shape({rows, kCols}));
  matrix.row_stride = kCols + 1;
  std::vector<float> numbers(static_cast<size_t>(rows * matrix.row_stride), 3e38F);
  for (int64_t row = 0; row < rows; ++row)
    numbers[static_cast<size_t>(row * matrix.row_stride + kCols)] = NAN;  // padding
  numbers[static_cast<size_t>(element / kCols * matrix.row_stride + element % kCols)] = value;
  const auto kernel =
      MakeTable(EmulatedGpu(seed))
          .Prepare({"CheckNumerics", {{"message", std::string("x")}}, {matrix}, {matrix}});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  std::byte* const data = memory.Allocate(matrix.bytes(), "x");
  EmulatedMemory::Write(data, numbers.data(), matrix.bytes());
  auto* const record = reinterpret_cast<Refusal*>(memory.Allocate(sizeof refusal, "refusal"));
  EmulatedMemory::Write(reinterpret_cast<std::byte*>(record), &refusal, sizeof refusal);
  std::byte* const workspace = memory.Allocate((*kernel)->workspace_bytes(), "workspace");
  Stream stream;
  stream.set_refusal(record);
  const void* const inputs[] = {data};
  void* const outputs[] = {data};
  (*kernel)->Run(inputs, outputs, workspace, stream);
  ExpectNoReports("CheckNumerics");
  stream.Refuse(*record);
  const Status status = stream.TakeStatus();
  const bool refused = record->number == 1;
  EXPECT_EQ(status, refused ? Aborted("x contains NaN or infinity") : OkStatus());
  return *record;
}

TEST(CudaCheckNumerics, RefusesTheFirstNumberThatIsNotFinite) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const int64_t element : {0, 99, 100, 4095, 8999}) {
      EXPECT_EQ(CheckWith(90, element, 1, {}, seed).number, 0);
      for (const float value : {NAN, INFINITY, -INFINITY}) {
        const Refusal refusal = CheckWith(90, element, value, {}, seed);
        EXPECT_EQ(refusal.number, 1);
        EXPECT_EQ(refusal.position, element);
      }
    }
  }
}

TEST(CudaCheckNumerics, KeepsTheRefusalOfAnEarlierKernel) {
  const Refusal earlier{.number = 17, .position = 3, .value = 4};
  const Refusal kept = CheckWith(2, 1, NAN, earlier, 1);
  EXPECT_EQ(kept.number, 17);
  EXPECT_EQ(kept.position, 3);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
