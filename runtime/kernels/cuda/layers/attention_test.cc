// Compares the kernels of attention with plain loops.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::kernels::cuda {
namespace {

TEST(CudaAttention, MatchesPlainLoops) {
  for (uint64_t seed = 0; seed < 24; ++seed) CompareAll(AttentionCases(seed), seed);
}

class CudaAttentionRequest : public testing::Test {
 protected:
  static Operand Dense(DType dtype, Shape shape) { return Operand::Dense(dtype, std::move(shape)); }
  static KernelRequest Request() {
    const Operand q = Dense(DType::kBFloat16, {2, 5, 3, 8});
    const Operand k = Dense(DType::kBFloat16, {2, 7, 3, 8});
    const Operand mask = Dense(DType::kBool, {2, 1, 1, 7});
    const Operand number = Dense(DType::kInt64, {});
    return {"Attention",
            {{"rate", 0.5}},
            {q, k, k, mask, number, number},
            {q, Dense(DType::kFloat32, {2, 2, 3, 5})}};
  }
  static std::string ErrorOf(const KernelRequest& request) {
    const auto kernel = MakeTable(EmulatedGpu(0)).Prepare(request);
    return kernel.ok() ? "" : std::string(Message(kernel.status()));
  }
};

TEST_F(CudaAttentionRequest, RefusesOperandsThatDoNotFit) {
  EXPECT_EQ(ErrorOf(Request()), "");
  const auto with = [](size_t input, const Operand& operand) {
    KernelRequest request = Request();
    request.inputs[input] = operand;
    return ErrorOf(request);
  };
  EXPECT_NE(with(0, Dense(DType::kFloat32, {2, 5, 3, 8})), "");
  EXPECT_NE(with(1, Dense(DType::kBFloat16, {2, 7, 3, 9})), "");
  EXPECT_NE(with(2, Dense(DType::kBFloat16, {2, 6, 3, 8})), "");
  EXPECT_NE(with(2, Dense(DType::kFloat16, {2, 7, 3, 8})), "");
  EXPECT_NE(with(3, Dense(DType::kBool, {2, 1, 2, 7})), "");
  EXPECT_EQ(with(3, Dense(DType::kBool, {5, 7})), "");
  EXPECT_NE(with(3, Dense(DType::kBool, {2, 7})), "");
  EXPECT_NE(with(3, Dense(DType::kBool, {1, 2, 1, 1, 7})), "");
  EXPECT_NE(with(4, Dense(DType::kInt32, {})), "");
  KernelRequest without_seed = Request();
  without_seed.inputs.resize(2);
  EXPECT_NE(ErrorOf(without_seed), "");
  KernelRequest wrong_result = Request();
  wrong_result.outputs[1] = Dense(DType::kFloat32, {2, 3, 5});
  EXPECT_NE(ErrorOf(wrong_result), "");
}

TEST_F(CudaAttentionRequest, RefusesLongHeads) {
  const auto error = [](int64_t size) {
    const Operand q = Dense(DType::kFloat16, {1, 2, 1, size});
    return ErrorOf({"Attention", {}, {q, q, q}, {q, Dense(DType::kFloat32, {2, 1, 1, 2})}});
  };
  EXPECT_EQ(error(128), "");
  EXPECT_NE(error(129), "");
  EXPECT_NE(error(0), "");
}

}  // namespace
}  // namespace tfjob::kernels::cuda
