// Compares matrix products with those of the CPU. Also plants a mistake in each field that is
// passed to the library; the comparisons must find every mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::kernels::cuda {
namespace {

using device::cuda::BlasApi;
using device::cuda::BlasResult;

constexpr uint64_t kSeeds = 12;
// The library and the CPU add in different orders.
constexpr double kTolerance = 5e-5;

// A product of m x k and k x n matrices, computed by MatMul or another op of this family.
Comparison MatMul(const std::string& op, int64_t m, int64_t n, int64_t k, Attributes attributes) {
  const bool ta = attributes.Get("transpose_a", false), tb = attributes.Get("transpose_b", false);
  Comparison comparison{
      .op = op,
      .attributes = attributes,
      .inputs = {{ta ? Shape({k, m}) : Shape({m, k})}, {tb ? Shape({n, k}) : Shape({k, n})}},
      .outputs = {{Shape({m, n})}},
      .tolerance = kTolerance};
  if (attributes.Get("bias", false)) comparison.inputs.push_back({Shape({n})});
  if (op == "MatMulAccumulate") comparison.inputs.push_back({Shape({m, n})});
  return comparison;
}

std::vector<Attributes> Transpositions() {
  std::vector<Attributes> all;
  for (const bool a : {false, true})
    for (const bool b : {false, true}) all.push_back({{"transpose_a", a}, {"transpose_b", b}});
  return all;
}

// A product of x [2,1,m,k] and y [3,k,n]. The bits select which axes are exchanged.
Comparison BatchMatMul(int64_t m, int64_t n, int64_t k, int bits) {
  const bool ax = bits & 1, ay = bits & 2, sx = bits & 4, sy = bits & 8, sz = bits & 16;
  const int64_t xr = ax ? k : m, xc = ax ? m : k, yr = ay ? n : k, yc = ay ? k : n;
  return {
      .op = "BatchMatMulV2",
      .attributes = {{"adj_x", ax}, {"adj_y", ay}, {"swap_x", sx}, {"swap_y", sy}, {"swap_z", sz}},
      .inputs = {{sx ? Shape({2, xr, 1, xc}) : Shape({2, 1, xr, xc})},
                 {sy ? Shape({yr, 3, yc}) : Shape({3, yr, yc})}},
      .outputs = {{sz ? Shape({2, m, 3, n}) : Shape({2, 3, m, n})}},
      .tolerance = kTolerance};
}

std::vector<Comparison> FusedMatMuls(int64_t m, int64_t n, int64_t k) {
  std::vector<Comparison> all;
  for (const char* activation : {"", "Relu", "Sigmoid", "Tanh"}) {
    for (const bool bias : {false, true}) {
      all.push_back(MatMul("FusedMatMul", m, n, k,
                           {{"bias", bias}, {"activation", std::string(activation)}}));
    }
  }
  return all;
}

int64_t Draw(PhiloxStream& random, std::initializer_list<int64_t> sizes) {
  return sizes.begin()[random.Below(static_cast<uint32_t>(sizes.size()))];
}

TEST(Products, EqualTheCpus) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    PhiloxStream random(seed);
    const int64_t m = Draw(random, {1, 2, 16, 33}), n = Draw(random, {1, 3, 10, 32});
    const int64_t k = Draw(random, {1, 4, 31, 64});
    for (Attributes attributes : Transpositions()) {
      Compare(MatMul("MatMul", m, n, k, attributes), seed);
      attributes.Set("alpha", -0.25);
      Compare(MatMul("MatMulAccumulate", m, n, k, attributes), seed);
    }
    for (const Comparison& comparison : FusedMatMuls(m, n, k)) Compare(comparison, seed);
  }
}

// All axes except the last are treated as rows.
TEST(Products, OfTensors) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Compare({"MatMul", {}, {{Shape({2, 3, 5})}, {Shape({5, 4})}}, {{Shape({2, 3, 4})}}, kTolerance},
            seed);
  }
}

TEST(Products, OfBatches) {
  for (int bits = 0; bits < 32; ++bits) {
    Compare(BatchMatMul(5, 7, 3, bits), static_cast<uint64_t>(bits));
    Compare(BatchMatMul(1, 1, 1, bits), static_cast<uint64_t>(bits));
    Compare(BatchMatMul(8, 4, 16, bits), static_cast<uint64_t>(bits));
  }
  // In the first case, the axes of the batch can be joined into one; in the second, there are none.
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Compare({"BatchMatMulV2",
             {},
             {{Shape({2, 3, 4, 5})}, {Shape({2, 3, 5, 2})}},
             {{Shape({2, 3, 4, 2})}},
             kTolerance},
            seed);
    Compare(
        {"BatchMatMulV2", {}, {{Shape({4, 5})}, {Shape({5, 2})}}, {{Shape({4, 2})}}, kTolerance},
        seed);
  }
}

// The library must not be called for products without elements.
TEST(Products, WithoutElements) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const auto& [m, n, k] : {std::tuple{3, 4, 0}, {0, 4, 2}, {3, 0, 2}}) {
      Compare(MatMul("MatMul", m, n, k, {}), seed);
      Compare(MatMul("MatMulAccumulate", m, n, k, {}), seed);
      for (const Comparison& comparison : FusedMatMuls(m, n, k)) Compare(comparison, seed);
      Compare(BatchMatMul(m, n, k, 0), seed);
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

// No product has two equal dimensions, which would hide mistakes.
std::vector<Comparison> Cases() {
  std::vector<Comparison> cases;
  for (Attributes attributes : Transpositions()) {
    cases.push_back(MatMul("MatMul", 4, 8, 12, attributes));
    attributes.Set("alpha", -0.25);
    cases.push_back(MatMul("MatMulAccumulate", 8, 4, 12, attributes));
  }
  for (const Comparison& comparison : FusedMatMuls(4, 8, 12)) cases.push_back(comparison);
  for (const int bits : {0, 1, 2, 4, 8, 16, 31}) cases.push_back(BatchMatMul(4, 8, 12, bits));
  for (const Comparison& comparison : FusedMatMuls(4, 8, 12))
    cases.push_back(WithHalfType(comparison, 0).back());
  return cases;
}

// Returns whether a comparison on the GPU finds a difference.
bool IsFound(const std::function<GpuAccess(uint64_t seed)>& gpu) {
  const std::vector<Comparison> cases = Cases();
  for (uint64_t seed = 0; seed < 3; ++seed) {
    for (const Comparison& comparison : cases)
      if (!FirstReport(comparison, seed, gpu(seed)).empty()) return true;
  }
  return false;
}

// Changes descriptions before they are prepared.
class PlantedProducts final : public Products {
 public:
  using Plant = std::function<void(ProductDescription&)>;
  PlantedProducts(std::shared_ptr<Products> products, Plant plant)
      : products_(std::move(products)), plant_(std::move(plant)) {}

  StatusOr<std::unique_ptr<Product>> Prepare(const ProductDescription& product) override {
    ProductDescription changed = product;
    plant_(changed);
    return products_->Prepare(changed);
  }

 private:
  const std::shared_ptr<Products> products_;
  const Plant plant_;
};

TEST(Mistakes, InEachFieldOfADescriptionAreFound) {
  using P = ProductDescription;
  const std::pair<const char*, PlantedProducts::Plant> mistakes[] = {
      {"m", [](P& p) { --p.m; }},
      {"n", [](P& p) { --p.n; }},
      {"k", [](P& p) { --p.k; }},
      {"m and n", [](P& p) { std::swap(p.m, p.n); }},
      {"a.transposed", [](P& p) { p.a.transposed = !p.a.transposed; }},
      {"b.transposed", [](P& p) { p.b.transposed = !p.b.transposed; }},
      {"a.ld", [](P& p) { ++p.a.ld; }},
      {"b.ld", [](P& p) { ++p.b.ld; }},
      {"ldd", [](P& p) { ++p.ldd; }},
      {"a.batch_stride", [](P& p) { ++p.a.batch_stride; }},
      {"b.batch_stride", [](P& p) { ++p.b.batch_stride; }},
      {"batch_stride_d", [](P& p) { ++p.batch_stride_d; }},
      {"batch", [](P& p) { p.batch = 1; }},
      {"alpha", [](P& p) { p.alpha = 1; }},
      {"beta", [](P& p) { p.beta = 0; }},
      {"epilogue", [](P& p) { p.epilogue = ProductEpilogue::kNone; }},
      {"Relu",
       [](P& p) {
         if (p.epilogue == ProductEpilogue::kReluBias) p.epilogue = ProductEpilogue::kBias;
       }},
      {"bias",
       [](P& p) {
         if (p.epilogue == ProductEpilogue::kReluBias) p.epilogue = ProductEpilogue::kRelu;
       }},
      {"arithmetic",
       [](P& p) {
         if (p.factors == FloatType::kFloat32) p.arithmetic = Arithmetic::kTf32;
       }},
      {"the half type",
       [](P& p) {
         if (p.factors == FloatType::kBFloat16) p.factors = FloatType::kFloat16;
         if (p.result == FloatType::kBFloat16) p.result = FloatType::kFloat16;
       }},
      {"the type of the result",
       [](P& p) {
         if (p.factors != FloatType::kFloat32) p.result = FloatType::kFloat32;
       }},
      {"the type of an intermediate result",
       [](P& p) {
         if (p.factors != FloatType::kFloat32) p.result = p.factors;
       }},
      {"alignment", [](P& p) { p.alignment = 16; }}};
  for (const auto& [field, plant] : mistakes) {
    EXPECT_TRUE(IsFound([&plant = plant](uint64_t seed) {
      GpuAccess gpu = EmulatedGpu(seed);
      gpu.products = std::make_shared<PlantedProducts>(gpu.products, plant);
      return gpu;
    })) << field;
  }
  EXPECT_FALSE(IsFound([](uint64_t seed) { return EmulatedGpu(seed); })) << "without a mistake";
}

// The functions of the library, without the mistakes that are planted below.
BlasApi library;
unsigned lost_attribute = 0;  // the attribute that is not set

void LoseProductAttribute(BlasApi& blas) {
  blas.MatmulDescSetAttribute = [](auto handle, unsigned attribute, const void* value,
                                   size_t bytes) {
    return attribute == lost_attribute
               ? device::cuda::kBlasSuccess
               : library.MatmulDescSetAttribute(handle, attribute, value, bytes);
  };
}
void LoseLayoutAttribute(BlasApi& blas) {
  blas.MatrixLayoutSetAttribute = [](auto handle, unsigned attribute, const void* value,
                                     size_t bytes) {
    return attribute == lost_attribute
               ? device::cuda::kBlasSuccess
               : library.MatrixLayoutSetAttribute(handle, attribute, value, bytes);
  };
}
void LosePreference(BlasApi& blas) {
  blas.MatmulPreferenceSetAttribute = [](auto handle, unsigned attribute, const void* value,
                                         size_t bytes) {
    return attribute == lost_attribute
               ? device::cuda::kBlasSuccess
               : library.MatmulPreferenceSetAttribute(handle, attribute, value, bytes);
  };
}

void ExpectFound(const std::string& mistake, const std::function<void(BlasApi&)>& plant) {
  EXPECT_TRUE(IsFound([&plant](uint64_t seed) {
    return EmulatedGpu(seed, [&plant](BlasApi& blas) {
      library = blas;
      plant(blas);
    });
  })) << mistake;
}

TEST(Mistakes, InAttributesAreFound) {
  using namespace device::cuda;  // NOLINT: many constants
  for (const unsigned attribute :
       {kBlasTransposeA, kBlasTransposeB, kBlasEpilogue, kBlasBiasPointer}) {
    lost_attribute = attribute;
    ExpectFound(StrCat("attribute ", attribute, " of the product"), LoseProductAttribute);
  }
  for (const unsigned attribute : {kBlasBatchCount, kBlasBatchStride}) {
    lost_attribute = attribute;
    ExpectFound(StrCat("attribute ", attribute, " of a layout"), LoseLayoutAttribute);
  }
  for (const unsigned attribute :
       {kBlasReductionSchemes, kBlasAlignmentA, kBlasAlignmentA + 1, kBlasAlignmentA + 3}) {
    lost_attribute = attribute;
    ExpectFound(StrCat("preference ", attribute), LosePreference);
  }
}

// Changes the arguments of each call.
template <typename Change>
void ChangeCalls(BlasApi& blas, Change) {
  blas.Matmul = [](auto handle, auto product, const void* alpha, const void* a, auto a_layout,
                   const void* b, auto b_layout, const void* beta, const void* c, auto c_layout,
                   void* d, auto d_layout, auto* algorithm, void* workspace, size_t bytes,
                   auto stream) -> BlasResult {
    Change()(alpha, a, b, beta, workspace, bytes);
    return library.Matmul(handle, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                          d_layout, algorithm, workspace, bytes, stream);
  };
}

TEST(Mistakes, InArgumentsAreFound) {
  static constexpr float kOne = 1, kZero = 0;
  using P = const void*&;
  ExpectFound("alpha", [](BlasApi& blas) {
    ChangeCalls(blas, [](P alpha, P, P, P, void*&, size_t&) { alpha = &kOne; });
  });
  ExpectFound("beta", [](BlasApi& blas) {
    ChangeCalls(blas, [](P, P, P, P beta, void*&, size_t&) { beta = &kZero; });
  });
  ExpectFound("a and b", [](BlasApi& blas) {
    ChangeCalls(blas, [](P, P a, P b, P, void*&, size_t&) { std::swap(a, b); });
  });
  ExpectFound("the workspace's address", [](BlasApi& blas) {
    ChangeCalls(blas, [](P, P, P, P, void*& workspace, size_t&) {
      workspace = static_cast<std::byte*>(workspace) + 64;
    });
  });
  ExpectFound("the workspace's size", [](BlasApi& blas) {
    ChangeCalls(blas, [](P, P, P, P, void*&, size_t& bytes) { --bytes; });
  });
  ExpectFound("rows and columns", [](BlasApi& blas) {
    blas.MatrixLayoutCreate = [](auto* handle, unsigned type, uint64_t rows, uint64_t cols,
                                 int64_t ld) {
      return library.MatrixLayoutCreate(handle, type, cols, rows,
                                        std::max(ld, static_cast<int64_t>(cols)));
    };
  });
  ExpectFound("the type of a matrix", [](BlasApi& blas) {
    blas.MatrixLayoutCreate = [](auto* handle, unsigned type, uint64_t rows, uint64_t cols,
                                 int64_t ld) {
      return library.MatrixLayoutCreate(
          handle, type == device::cuda::kBlasBFloat16 ? device::cuda::kBlasFloat16 : type, rows,
          cols, ld);
    };
  });
  ExpectFound("the type of the computation", [](BlasApi& blas) {
    blas.MatmulDescCreate = [](auto* handle, unsigned, unsigned scale) {
      return library.MatmulDescCreate(handle, device::cuda::kBlasComputeTf32, scale);
    };
  });
}

TEST(Products, AreRefusedIfTheManualForbidsThem) {
  const ProductDescription good{.m = 4,
                                .n = 5,
                                .k = 6,
                                .a = {.ld = 4, .batch_stride = 24},
                                .b = {.ld = 6, .batch_stride = 30},
                                .ldd = 4,
                                .batch_stride_d = 20,
                                .batch = 2};
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
  // Columns of several matrices may alternate.
  ProductDescription interleaved = good;
  interleaved.ldd = 8;
  interleaved.batch_stride_d = 4;
  EXPECT_TRUE(gpu.products->Prepare(interleaved).ok());
}

// TF32 rounds each factor to 11 significant bits.
TEST(Products, OfTf32AreLessExact) {
  const auto tf32 = [](uint64_t seed) {
    GpuAccess gpu = EmulatedGpu(seed);
    gpu.arithmetic = Arithmetic::kTf32;
    return gpu;
  };
  Comparison comparison = MatMul("MatMul", 8, 8, 16, {});
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
    return std::string(FirstReport(MatMul("MatMul", 2, 2, 2, {}), 0, EmulatedGpu(0, set)));
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
