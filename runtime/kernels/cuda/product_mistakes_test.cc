// Plants a mistake in each field that is passed to the library for matrix products. The comparisons
// of GPU and CPU must find every mistake.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/kernels/cuda/checks/product_cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::kernels::cuda {
namespace {

using device::cuda::BlasApi;
using device::cuda::BlasResult;

// No product has two equal dimensions, because these would hide mistakes.
std::vector<Comparison> Cases() {
  std::vector<Comparison> cases;
  for (Attributes attributes : Transpositions()) {
    cases.push_back(MatMulCase("MatMul", 4, 8, 12, attributes));
    attributes.Set("alpha", -0.25);
    cases.push_back(MatMulCase("MatMulAccumulate", 8, 4, 12, attributes));
  }
  for (const Comparison& comparison : FusedMatMulCases(4, 8, 12)) cases.push_back(comparison);
  for (const int bits : {0, 1, 2, 4, 8, 16, 31}) cases.push_back(BatchMatMulCase(4, 8, 12, bits));
  for (const Comparison& comparison : FusedMatMulCases(4, 8, 12))
    cases.push_back(WithHalfType(comparison, 0).back());
  for (const Comparison& comparison : GeluCases(4, 8, 12))
    cases.push_back(WithHalfType(comparison, 0).back());
  for (const Comparison& comparison : BiasGradCases(4, 8, 12)) {
    const std::vector<Comparison> both = WithHalfType(comparison, 0);
    cases.insert(cases.end(), both.begin(), both.end());
  }
  return cases;
}

// Returns whether a comparison on the GPU finds a difference.
bool IsFound(const std::function<GpuAccess(uint64_t seed)>& gpu) {
  const std::vector<Comparison> cases = Cases();
  for (uint64_t seed = 0; seed < 8; ++seed) {
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

void ExpectFoundInDescriptions(
    const std::vector<std::pair<const char*, PlantedProducts::Plant>>& mistakes) {
  for (const auto& [field, plant] : mistakes) {
    EXPECT_TRUE(IsFound([&plant = plant](uint64_t seed) {
      GpuAccess gpu = EmulatedGpu(seed);
      gpu.products = std::make_shared<PlantedProducts>(gpu.products, plant);
      return gpu;
    })) << field;
  }
}

TEST(Mistakes, InEachFieldOfADescriptionAreFound) {
  using P = ProductDescription;
  ExpectFoundInDescriptions({{"m", [](P& p) { --p.m; }},
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
                                if (p.epilogue == ProductEpilogue::kReluBias)
                                  p.epilogue = ProductEpilogue::kBias;
                              }},
                             {"bias",
                              [](P& p) {
                                if (p.epilogue == ProductEpilogue::kReluBias)
                                  p.epilogue = ProductEpilogue::kRelu;
                              }},
                             {"arithmetic",
                              [](P& p) {
                                if (p.factors == FloatType::kFloat32)
                                  p.arithmetic = Arithmetic::kTf32;
                              }},
                             {"the half type",
                              [](P& p) {
                                if (p.factors == FloatType::kBFloat16)
                                  p.factors = FloatType::kFloat16;
                                if (p.result == FloatType::kBFloat16)
                                  p.result = FloatType::kFloat16;
                              }},
                             {"the type of the result",
                              [](P& p) {
                                if (p.factors != FloatType::kFloat32)
                                  p.result = FloatType::kFloat32;
                              }},
                             {"the type of an intermediate result",
                              [](P& p) {
                                if (p.factors != FloatType::kFloat32) p.result = p.factors;
                              }},
                             {"alignment", [](P& p) { p.alignment = 16; }}});
  EXPECT_FALSE(IsFound([](uint64_t seed) { return EmulatedGpu(seed); })) << "without a mistake";
}

TEST(Mistakes, InTheSumsOfAFactorAreFound) {
  using P = ProductDescription;
  ExpectFoundInDescriptions({{"sums",
                              [](P& p) {
                                if (HasSums(p.epilogue)) p.epilogue = ProductEpilogue::kNone;
                              }},
                             {"the summed factor",
                              [](P& p) {
                                if (p.epilogue == ProductEpilogue::kSumA)
                                  p.epilogue = ProductEpilogue::kSumB;
                              }},
                             {"the other summed factor", [](P& p) {
                                if (p.epilogue == ProductEpilogue::kSumB)
                                  p.epilogue = ProductEpilogue::kSumA;
                              }}});
}

TEST(Mistakes, InGeluAreFound) {
  using P = ProductDescription;
  const auto replace = [](ProductEpilogue from, ProductEpilogue to) {
    return [from, to](P& p) {
      if (p.epilogue == from) p.epilogue = to;
    };
  };
  using enum ProductEpilogue;
  ExpectFoundInDescriptions({{"ld_before",
                              [](P& p) {
                                if (HasBefore(p.epilogue)) p.ld_before += 8;
                              }},
                             {"GELU", replace(kGelu, kNone)},
                             {"GELU after the bias", replace(kGeluBias, kBias)},
                             {"the bias before GELU", replace(kGeluBias, kGelu)},
                             {"the gradient of GELU", replace(kGeluGradient, kNone)},
                             {"GELU in place of its gradient", replace(kGeluGradient, kGelu)}});
}

// The library's original functions, which the mistaken functions below call.
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
  for (const unsigned attribute : {kBlasTransposeA, kBlasTransposeB, kBlasEpilogue,
                                   kBlasBiasPointer, kBlasAuxPointer, kBlasAuxLd}) {
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

}  // namespace
}  // namespace tfjob::kernels::cuda
