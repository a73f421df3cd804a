// Compares matrix products with those of the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/product_cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::kernels::cuda {
namespace {

using device::cuda::BlasApi;

constexpr uint64_t kSeeds = 12;
TEST(Products, EqualTheCpus) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) CompareAll(MatMulCases(seed), seed);
}

// All axes except the last are treated as rows.
TEST(Products, OfTensors) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Compare({"MatMul",
             {},
             {{Shape({2, 3, 5})}, {Shape({5, 4})}},
             {{Shape({2, 3, 4})}},
             kProductTolerance},
            seed);
  }
}

TEST(Products, OfBatches) {
  for (uint64_t seed = 0; seed < 32; ++seed) CompareAll(BatchMatMulCases(seed), seed);
  // In the first case, the axes of the batch can be joined into one; in the second, there are none.
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Compare({"BatchMatMulV2",
             {},
             {{Shape({2, 3, 4, 5})}, {Shape({2, 3, 5, 2})}},
             {{Shape({2, 3, 4, 2})}},
             kProductTolerance},
            seed);
    Compare({"BatchMatMulV2",
             {},
             {{Shape({4, 5})}, {Shape({5, 2})}},
             {{Shape({4, 2})}},
             kProductTolerance},
            seed);
  }
}

// The library must not be called for products without elements.
TEST(Products, WithoutElements) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const auto& [m, n, k] : {std::tuple{3, 4, 0}, {0, 4, 2}, {3, 0, 2}}) {
      Compare(MatMulCase("MatMul", m, n, k, {}), seed);
      Compare(MatMulCase("MatMulAccumulate", m, n, k, {}), seed);
      CompareAll(FusedMatMulCases(m, n, k), seed);
      CompareAll(BiasGradCases(m, n, k), seed);
      CompareAll(GeluCases(m, n, k), seed);
      Compare(BatchMatMulCase(m, n, k, 0), seed);
    }
  }
}

TEST(Products, AreRefusedIfOperandsDoNotFit) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  const auto dense = [](DType dtype, Shape shape) { return Operand::Dense(dtype, shape); };
  const Operand a = dense(DType::kFloat32, Shape({2, 3})),
                c = dense(DType::kFloat32, Shape({2, 2}));
  EXPECT_EQ(table.Prepare({"MatMul", {}, {a, a}, {c}}).status().code(),
            StatusCode::kInvalidArgument);
  const Operand doubles = dense(DType::kFloat64, Shape({2, 2}));
  EXPECT_EQ(Message(table.Prepare({"MatMul", {}, {doubles, doubles}, {doubles}}).status()),
            "device CUDA: MatMul(float64[2,2], float64[2,2]) -> float64[2,2]: no kernel for dtype "
            "float64");
}

// Returns two products of a 4 x 6 by a 6 x 5 matrix.
ProductDescription SmallBatch() {
  return {.m = 4,
          .n = 5,
          .k = 6,
          .a = {.ld = 4, .batch_stride = 24},
          .b = {.ld = 6, .batch_stride = 30},
          .ldd = 4,
          .batch_stride_d = 20,
          .batch = 2};
}

TEST(Products, AreRefusedIfTheManualForbidsThem) {
  const ProductDescription good = SmallBatch();
  EXPECT_EQ(CheckProduct(good), OkStatus());
  using P = ProductDescription;
  const std::pair<std::function<void(P&)>, const char*> cases[] = {
      {[](P& p) { p.m = 0; }, "a product with m = 0: expected 1 to 2147483647"},
      {[](P& p) { p.n = int64_t{1} << 31; },
       "a product with n = 2147483648: expected 1 to 2147483647"},
      {[](P& p) { p.k = -1; }, "a product with k = -1: expected 1 to 2147483647"},
      {[](P& p) { p.a.ld = 3; },
       "matrix a has 4 rows, so its columns cannot begin 3 elements apart"},
      {[](P& p) { p.a.transposed = true; },
       "matrix a has 6 rows, so its columns cannot begin 4 elements apart"},
      {[](P& p) { p.b.ld = 5; },
       "matrix b has 6 rows, so its columns cannot begin 5 elements apart"},
      {[](P& p) { p.ldd = 3; },
       "matrix d has 4 rows, so its columns cannot begin 3 elements apart"},
      {[](P& p) { p.b.batch_stride = -1; }, "matrix b has a batch stride of -1"},
      {[](P& p) { p.batch = 0; }, "a batch of 0 products"},
      {[](P& p) { p.batch_stride_d = 19; },
       "the matrices of the result overlap: they begin 19 elements apart"},
      {[](P& p) { p.alignment = 8; }, "an alignment of 8 bytes: expected 4 or 16"},
      {[](P& p) { p.alignment = 2; }, "an alignment of 2 bytes: expected 4 or 16"},
      {[](P& p) {
         p.factors = FloatType::kFloat16;
         p.alignment = 4;
       },
       "an alignment of 4 bytes: expected 2 or 16"},
      {[](P& p) { p.result = FloatType::kFloat16; },
       "a product of float32 numbers with a result of float16: expected the same type or float32"},
      {[](P& p) {
         p.factors = FloatType::kBFloat16;
         p.result = FloatType::kFloat16;
       },
       "a product of bfloat16 numbers with a result of float16: expected the same type or float32"},
      {[](P& p) {
         p.factors = FloatType::kBFloat16;
         p.arithmetic = Arithmetic::kTf32;
       },
       "a product of bfloat16 numbers with TF32"}};
  const GpuAccess gpu = EmulatedGpu(0);
  for (const auto& [change, message] : cases) {
    ProductDescription product = good;
    change(product);
    EXPECT_EQ(gpu.products->Prepare(product).status(), InvalidArgument(message));
  }
  ProductDescription sums = good;
  sums.epilogue = ProductEpilogue::kSumA;
  EXPECT_EQ(gpu.products->Prepare(sums).status(),
            InvalidArgument("the sums of the factors of a batch of 2 products"));
  // The columns of several matrices may alternate in memory.
  ProductDescription interleaved = good;
  interleaved.ldd = 8;
  interleaved.batch_stride_d = 4;
  EXPECT_TRUE(gpu.products->Prepare(interleaved).ok());
}

TEST(Products, WithGeluAreRefusedIfTheManualForbidsThem) {
  const GpuAccess gpu = EmulatedGpu(0);
  ProductDescription gelu = SmallBatch();
  gelu.epilogue = ProductEpilogue::kGelu;
  EXPECT_EQ(gpu.products->Prepare(gelu).status(),
            InvalidArgument("matrix before GELU has 4 rows, so its columns cannot begin 0 elements "
                            "apart"));
  gelu.ld_before = 12;
  EXPECT_EQ(gpu.products->Prepare(gelu).status(),
            InvalidArgument("the columns of the value before GELU begin 12 elements apart: "
                            "expected a multiple of 8"));
  gelu.ld_before = 8;
  EXPECT_EQ(gpu.products->Prepare(gelu).status(), InvalidArgument("GELU of a batch of 2 products"));
}

// TF32 rounds each factor to 11 significant bits.
TEST(Products, OfTf32AreLessExact) {
  const auto tf32 = [](uint64_t seed) {
    GpuAccess gpu = EmulatedGpu(seed);
    gpu.arithmetic = Arithmetic::kTf32;
    return gpu;
  };
  Comparison comparison = MatMulCase("MatMul", 8, 8, 16, {});
  EXPECT_NE(FirstReport(comparison, 1, tf32(1)), "");
  comparison.tolerance = 0.05;
  EXPECT_EQ(FirstReport(comparison, 1, tf32(1)), "");
}

TEST(Products, ReturnTheLibrarysHandles) {
  {
    const GpuAccess gpu = EmulatedGpu(0);
    const KernelTable table = MakeTable(gpu);
    const Operand matrix = Operand::Dense(DType::kFloat32, Shape({2, 2}));
    const auto kernel = table.Prepare({"MatMul", {}, {matrix, matrix}, {matrix}});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_GT(device::cuda::FakeBlasHandles(), 1);
  }
  EXPECT_EQ(device::cuda::FakeBlasHandles(), 0);
}

TEST(Products, AnErrorOfTheLibraryIsReported) {
  const auto failing = [](auto set) {
    return std::string(FirstReport(MatMulCase("MatMul", 2, 2, 2, {}), 0, EmulatedGpu(0, set)));
  };
  EXPECT_THAT(failing([](BlasApi& blas) {
                blas.MatrixLayoutCreate = [](auto*, unsigned, uint64_t, uint64_t, int64_t) {
                  return device::cuda::kBlasNotSupported;
                };
              }),
              testing::HasSubstr("cublasLtMatrixLayoutCreate: CUBLAS_STATUS_NOT_SUPPORTED"));
  EXPECT_THAT(failing([](BlasApi& blas) {
                blas.MatrixLayoutSetAttribute = [](auto, unsigned, const void*, size_t) {
                  return device::cuda::kBlasNotSupported;
                };
              }),
              testing::HasSubstr("cublasLtMatrixLayoutSetAttribute, attribute 5: "));
  EXPECT_THAT(failing([](BlasApi& blas) {
                blas.MatmulAlgoGetHeuristic = [](auto, auto, auto, auto, auto, auto, auto, int,
                                                 auto*, int* found) {
                  *found = 0;
                  return device::cuda::kBlasSuccess;
                };
              }),
              testing::HasSubstr("cuBLASLt has no algorithm for a product of 2 x 2 by 2 x 2"));
  EXPECT_THAT(failing([](BlasApi& blas) {
                blas.MatmulAlgoGetHeuristic = [](auto, auto, auto, auto, auto, auto, auto, int,
                                                 auto*,
                                                 int*) { return device::cuda::kBlasNotSupported; };
              }),
              testing::HasSubstr("cuBLASLt has no algorithm for a product of 2 x 2 by 2 x 2"));
}

// If the library has no algorithm for an epilogue, separate kernels compute the same result.
TEST(Products, NeedNoAlgorithmForEpilogues) {
  static BlasApi library;
  static int refused = 0;
  const auto without = [](BlasApi& blas) {
    library = blas;
    blas.MatmulDescSetAttribute = [](auto handle, unsigned attribute, const void* value,
                                     size_t bytes) {
      const bool epilogue = attribute == device::cuda::kBlasEpilogue &&
                            *static_cast<const uint32_t*>(value) != device::cuda::kBlasEpilogueNone;
      refused += epilogue ? 1 : 0;
      const uint32_t unknown = 1 << 20;  // a setting for which the fake has no algorithm
      return library.MatmulDescSetAttribute(handle, attribute, epilogue ? &unknown : value, bytes);
    };
  };
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const auto& cases :
         {BiasGradCases(8, 4, 12), FusedMatMulCases(8, 4, 12), GeluCases(4, 8, 12)})
      for (const Comparison& comparison : cases)
        for (const Comparison& each : WithHalfType(comparison, seed))
          EXPECT_EQ(FirstReport(each, seed, EmulatedGpu(seed, without)), "");
  }
  EXPECT_GT(refused, 0);
}

TEST(Products, SumOnlyRowsOverWhichTheyAdd) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  const Operand a = Operand::Dense(DType::kFloat32, Shape({2, 2}));
  const Operand sums = Operand::Dense(DType::kFloat32, Shape({2}));
  const auto error = [&](const Attributes& attributes) {
    const auto kernel = table.Prepare({"MatMulBiasGrad", attributes, {a, a}, {a, sums}});
    return std::string(Message(kernel.status()));
  };
  EXPECT_THAT(error({{"transpose_b", true}}),
              testing::EndsWith("the product does not sum over the rows of input 1"));
  EXPECT_THAT(error({{"summed", int64_t{0}}}),
              testing::EndsWith("the product does not sum over the rows of input 0"));
  EXPECT_THAT(error({{"summed", int64_t{2}}}),
              testing::EndsWith("attribute summed is 2: expected 0 or 1"));
}

TEST(Products, TheFirstRunTakesOnlyTheMemoryOfTheLargestMatrix) {
  size_t bytes = 0;
  const auto products =
      Products::Create(device::cuda::FakeBlas(), {.enter = [] {},
                                                  .handle = [](Stream&) { return nullptr; },
                                                  .fail = [](const Status&) {},
                                                  .rehearse =
                                                      [&bytes](size_t size, const auto&) {
                                                        bytes = size;
                                                        return OkStatus();
                                                      }});
  ASSERT_TRUE(products.ok()) << products.status();
  const int64_t sizes[][3] = {{50'000, 8, 16}, {16, 50'000, 8}, {8, 16, 50'000}};
  for (const auto& [m, n, k] : sizes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const auto product = (*products)->Prepare({.m = m,
                                                   .n = n,
                                                   .k = k,
                                                   .a = {.transposed = ta, .ld = ta ? k : m},
                                                   .b = {.transposed = tb, .ld = tb ? n : k},
                                                   .ldd = m});
        ASSERT_TRUE(product.ok()) << product.status();
        EXPECT_LE(bytes, 50'000 * 16 * sizeof(float) + 256 + (*product)->workspace_bytes());
        EXPECT_GE(bytes, 50'000 * 16 * sizeof(float));
      }
    }
  }
}

}  // namespace
}  // namespace tfjob::kernels::cuda
