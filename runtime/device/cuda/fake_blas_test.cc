// Tests that the fake library refuses wrong arguments. The tests of the kernels rely on this.
#include "runtime/device/cuda/fake_blas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace tfjob::device::cuda {
namespace {

// A product of a 2 x 3 matrix by a 3 x 4 matrix, with all arguments of the call.
struct Call {
  int32_t transpose_a = 0;
  uint32_t epilogue = kBlasEpilogueBias;
  const void* bias = nullptr;
  const void* aux = nullptr;
  int64_t aux_ld = 0;
  uint64_t a_rows = 2;
  int64_t a_ld = 2, d_ld = 2, d_stride = 8;
  int32_t batch = 1, d_batch = 1;
  uint32_t alignment = 4, schemes = kBlasReduceInComputeType;
  size_t workspace_bytes = 1024;
  const float* a = nullptr;
  void* workspace = nullptr;
  // Changes the product after its algorithm has been chosen.
  std::function<void(const BlasApi&, BlasProductHandle)> change;
};

class FakeBlasTest : public testing::Test {
 protected:
  // Returns a call that the library accepts.
  Call Right() {
    Call call;
    call.bias = bias_;
    call.a = a_;
    call.workspace = workspace_;
    return call;
  }

  // Makes the call. Returns the reason why the library refused it, or "" if the library accepted
  // it.
  std::string Refusal(const Call& call) {
    const BlasApi& blas = FakeBlas({.submit =
                                        [](const Operation& operation, StreamHandle) {
                                          std::vector<void*> addresses;
                                          for (const Access& access : operation.accesses)
                                            addresses.push_back(const_cast<void*>(access.address));
                                          operation.run(addresses);
                                          return kSuccess;
                                        },
                                    .captures = [](StreamHandle) { return false; }});
    BlasProductHandle product = nullptr;
    BlasLayoutHandle a = nullptr, b = nullptr, d = nullptr;
    BlasPreferenceHandle preference = nullptr;
    blas.MatmulDescCreate(&product, kBlasComputeFloat32, kBlasFloat32);
    blas.MatmulDescSetAttribute(product, kBlasTransposeA, &call.transpose_a, 4);
    blas.MatmulDescSetAttribute(product, kBlasEpilogue, &call.epilogue, 4);
    blas.MatmulDescSetAttribute(product, kBlasBiasPointer, &call.bias, 8);
    blas.MatmulDescSetAttribute(product, kBlasAuxPointer, &call.aux, 8);
    blas.MatmulDescSetAttribute(product, kBlasAuxLd, &call.aux_ld, 8);
    if (blas.MatrixLayoutCreate(&a, kBlasFloat32, call.a_rows, 3, call.a_ld) != kBlasSuccess) {
      blas.MatmulDescDestroy(product);
      return FakeBlasRefusal();
    }
    blas.MatrixLayoutCreate(&b, kBlasFloat32, 3, 4, 3);
    blas.MatrixLayoutCreate(&d, kBlasFloat32, 2, 4, call.d_ld);
    blas.MatrixLayoutSetAttribute(a, kBlasBatchCount, &call.batch, 4);
    blas.MatrixLayoutSetAttribute(b, kBlasBatchCount, &call.batch, 4);
    blas.MatrixLayoutSetAttribute(d, kBlasBatchCount, &call.d_batch, 4);
    blas.MatrixLayoutSetAttribute(d, kBlasBatchStride, &call.d_stride, 8);
    blas.MatmulPreferenceCreate(&preference);
    const uint64_t most = 1024;
    blas.MatmulPreferenceSetAttribute(preference, kBlasMaxWorkspace, &most, 8);
    blas.MatmulPreferenceSetAttribute(preference, kBlasReductionSchemes, &call.schemes, 4);
    for (unsigned i = 0; i < 4; ++i)
      blas.MatmulPreferenceSetAttribute(preference, kBlasAlignmentA + i, &call.alignment, 4);
    BlasHeuristic heuristic;
    int found = 0;
    if (blas.MatmulAlgoGetHeuristic(nullptr, product, a, b, d, d, preference, 1, &heuristic,
                                    &found) == kBlasSuccess) {
      if (call.change) call.change(blas, product);
      const float one = 1, zero = 0;
      blas.Matmul(nullptr, product, &one, call.a, a, b_, b, &zero, d_, d, d_, d,
                  &heuristic.algorithm, call.workspace, call.workspace_bytes, nullptr);
    }
    blas.MatmulDescDestroy(product);
    for (const BlasLayoutHandle layout : {a, b, d}) blas.MatrixLayoutDestroy(layout);
    blas.MatmulPreferenceDestroy(preference);
    return FakeBlasRefusal();
  }

  alignas(256) float a_[8] = {1, 2, 3, 4, 5, 6};  // columns of 2
  alignas(256) float b_[24] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};
  alignas(256) float d_[32] = {};
  alignas(256) float bias_[4] = {10, 20};
  alignas(256) float aux_[32] = {};
  alignas(256) std::byte workspace_[1024 + 64];
};

TEST_F(FakeBlasTest, ComputesTheProduct) {
  EXPECT_EQ(Refusal(Right()), "");
  const float expected[] = {11, 22, 13, 24, 15, 26, 19, 32};
  EXPECT_TRUE(std::equal(expected, expected + 8, d_));
}

TEST_F(FakeBlasTest, AddsTheElementsOfAFactor) {
  Call call = Right();
  call.epilogue = kBlasEpilogueBiasGradientA;
  EXPECT_EQ(Refusal(call), "");
  const float expected[] = {1, 2, 3, 4, 5, 6, 9, 12};
  EXPECT_TRUE(std::equal(expected, expected + 8, d_));
  EXPECT_EQ(bias_[0], 9);
  EXPECT_EQ(bias_[1], 12);
  call.epilogue = kBlasEpilogueBiasGradientB;
  EXPECT_EQ(Refusal(call), "");
  const float sums[] = {1, 1, 1, 3};
  EXPECT_TRUE(std::equal(sums, sums + 4, bias_));
}

TEST_F(FakeBlasTest, ComputesGeluAndItsGradient) {
  Call call = Right();
  call.epilogue = kBlasEpilogueGeluBias;
  call.aux = aux_;
  call.aux_ld = 8;
  std::fill(bias_, bias_ + 4, -3.0F);  // so that the first element of the sum is -2
  EXPECT_EQ(Refusal(call), "");
  EXPECT_EQ(aux_[0], -2);
  EXPECT_EQ(aux_[8 * 3 + 1], 12 - 3);
  EXPECT_EQ(aux_[2], 0);
  EXPECT_NEAR(d_[0], -0.0454023, 1e-6);
  EXPECT_NEAR(d_[7], 9, 1e-6);
  call.epilogue = kBlasEpilogueGeluGradient;
  call.bias = nullptr;
  EXPECT_EQ(Refusal(call), "");
  EXPECT_NEAR(d_[0], 1 * -0.0860992, 1e-6);
  EXPECT_NEAR(d_[7], 12 * 1, 1e-5);
}

TEST_F(FakeBlasTest, RefusesGeluThatTheManualForbids) {
  Call call = Right();
  call.epilogue = kBlasEpilogueGeluBias;
  EXPECT_EQ(Refusal(call), "epilogue 164 without an auxiliary matrix");
  call.aux = aux_;
  call.aux_ld = 4;
  EXPECT_EQ(Refusal(call),
            "a leading dimension of 4 of the auxiliary matrix, for 2 rows: it must be a multiple "
            "of 8");
  call.aux_ld = 8;
  call.batch = call.d_batch = 2;
  EXPECT_EQ(Refusal(call), "epilogue 164 of a batch");
  call.batch = call.d_batch = 1;
  call.epilogue = kBlasEpilogueBias;
  EXPECT_EQ(Refusal(call), "epilogue 4 with an auxiliary matrix");
  call.epilogue = kBlasEpilogueGeluBias;
  call.change = [this](const BlasApi& blas, BlasProductHandle product) {
    const void* const moved = aux_ + 1;
    blas.MatmulDescSetAttribute(product, kBlasAuxPointer, &moved, 8);
  };
  EXPECT_EQ(Refusal(call),
            "the auxiliary matrix is aligned to 4 bytes, but the algorithm needs 256");
}

TEST_F(FakeBlasTest, RefusesSumsThatTheManualForbids) {
  Call call = Right();
  call.epilogue = kBlasEpilogueBiasGradientA;
  call.bias = nullptr;
  EXPECT_EQ(Refusal(call), "epilogue 256 without a bias");
  call.epilogue = kBlasEpilogueBiasGradientB;
  call.bias = bias_;
  call.batch = call.d_batch = 2;
  EXPECT_EQ(Refusal(call), "epilogue 512 of a batch");
}

TEST_F(FakeBlasTest, RefusesWhatTheManualForbids) {
  const std::pair<std::function<void(Call&)>, const char*> cases[] = {
      {[](Call& c) { c.a_ld = 1; }, "a leading dimension of 1 for 2 rows"},
      {[](Call& c) { c.a_rows = 0; }, "a matrix of 0 rows and 3 columns"},
      {[](Call& c) { c.transpose_a = 1; },
       "A is 2 x 3, B 3 x 4, D 2 x 4 before they are transposed"},
      {[](Call& c) { c.transpose_a = 2; }, "a transposition of 2"},
      {[](Call& c) { c.epilogue = kBlasEpilogueRelu; }, "epilogue 2 with a bias"},
      {[](Call& c) { c.bias = nullptr; }, "epilogue 4 without a bias"},
      {[](Call& c) { c.epilogue = 3; }, "epilogue 3"},
      {[](Call& c) { c.d_batch = 2; }, "a batch of 1 matrices, and one of 2"},
      {[](Call& c) {
         c.batch = c.d_batch = 2;
         c.d_stride = 7;
       },
       "the matrices of D overlap"},
      {[](Call& c) { c.schemes = 7; }, "reduction schemes 7, some of which add in any order"},
      {[](Call& c) { c.workspace_bytes = 99; }, "a workspace of 99 bytes; the algorithm needs 100"},
      {[](Call& c) { c.workspace = static_cast<std::byte*>(c.workspace) + 64; },
       "a workspace that is not aligned to 256 bytes"},
      {[](Call& c) { c.a = nullptr; }, "matrix 0 has no address"},
      {[](Call& c) {
         c.alignment = 16;
         ++c.a;
       },
       "matrix 0 is aligned to 4 bytes, but the algorithm needs 16"},
      {[](Call& c) {
         c.change = [bias = static_cast<const float*>(c.bias) + 1](const BlasApi& blas,
                                                                   BlasProductHandle product) {
           const void* const moved = bias;
           blas.MatmulDescSetAttribute(product, kBlasBiasPointer, &moved, 8);
         };
       },
       "the bias is aligned to 4 bytes, but the algorithm needs 256"},
      {[](Call& c) {
         c.change = [](const BlasApi& blas, BlasProductHandle product) {
           const uint32_t epilogue = kBlasEpilogueReluBias;
           blas.MatmulDescSetAttribute(product, kBlasEpilogue, &epilogue, 4);
         };
       },
       "the algorithm was chosen for other descriptors"},
      {[](Call& c) {
         c.change = [](const BlasApi& blas, BlasProductHandle product) {
           blas.MatmulDescSetAttribute(product, kBlasTransposeA, "", 1);
         };
       },
       "attribute 3 has 1 bytes, but takes 4"}};
  for (const auto& [change, refusal] : cases) {
    Call call = Right();
    change(call);
    EXPECT_EQ(Refusal(call), refusal);
  }
}

}  // namespace
}  // namespace tfjob::device::cuda
