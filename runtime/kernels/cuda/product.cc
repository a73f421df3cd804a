#include "runtime/kernels/cuda/product.h"

#include <algorithm>
#include <utility>

namespace tfjob::kernels::cuda {
namespace {

using device::cuda::BlasApi;
using device::cuda::BlasResult;
using device::cuda::kBlasSuccess;

// NVIDIA recommends 32 MiB for GPUs of compute capability 9.0 ("cublasSetWorkspace").
constexpr uint64_t kMaxWorkspace = uint64_t{32} << 20;
constexpr int64_t kMostElements = INT32_MAX;

uint32_t EpilogueOf(ProductEpilogue epilogue) {
  switch (epilogue) {
    case ProductEpilogue::kRelu:
      return device::cuda::kBlasEpilogueRelu;
    case ProductEpilogue::kBias:
      return device::cuda::kBlasEpilogueBias;
    case ProductEpilogue::kReluBias:
      return device::cuda::kBlasEpilogueReluBias;
    case ProductEpilogue::kSumA:
      return device::cuda::kBlasEpilogueBiasGradientA;
    case ProductEpilogue::kSumB:
      return device::cuda::kBlasEpilogueBiasGradientB;
    case ProductEpilogue::kGelu:
      return device::cuda::kBlasEpilogueGelu;
    case ProductEpilogue::kGeluBias:
      return device::cuda::kBlasEpilogueGeluBias;
    case ProductEpilogue::kGeluGradient:
      return device::cuda::kBlasEpilogueGeluGradient;
    case ProductEpilogue::kNone:
      break;
  }
  return device::cuda::kBlasEpilogueNone;
}

unsigned BlasTypeOf(FloatType type) {
  if (type == FloatType::kBFloat16) return device::cuda::kBlasBFloat16;
  if (type == FloatType::kFloat16) return device::cuda::kBlasFloat16;
  return device::cuda::kBlasFloat32;
}

// Collects the results of calls to the library's functions, and keeps the first error.
class Calls {
 public:
  explicit Calls(const BlasApi& blas) : blas_(blas) {}

  void Check(BlasResult result, std::string_view call) {
    if (status_.ok()) status_ = ToStatus(blas_, result, call);
  }
  template <typename Set, typename Handle, typename Value>
  void SetAttribute(Set set, std::string_view call, Handle handle, unsigned attribute,
                    const Value& value) {
    if (!status_.ok()) return;
    const BlasResult result = set(handle, attribute, &value, sizeof value);
    if (result != kBlasSuccess) Check(result, StrCat(call, ", attribute ", attribute));
  }
  const Status& status() const { return status_; }

 private:
  const BlasApi& blas_;
  Status status_;
};

// The library's objects for one product.
class BlasProduct final : public Product {
 public:
  BlasProduct(const BlasApi& blas, device::cuda::BlasHandle library, Products::Gpu gpu,
              const ProductDescription& product)
      : blas_(blas), library_(library), gpu_(std::move(gpu)), p_(product) {}
  ~BlasProduct() override {
    if (product_ != nullptr) blas_.MatmulDescDestroy(product_);
    for (const auto layout : {a_, b_, d_})
      if (layout != nullptr) blas_.MatrixLayoutDestroy(layout);
  }

  Status Open() {
    Calls calls(blas_);
    const unsigned compute = p_.arithmetic == Arithmetic::kTf32 ? device::cuda::kBlasComputeTf32
                                                                : device::cuda::kBlasComputeFloat32;
    calls.Check(blas_.MatmulDescCreate(&product_, compute, device::cuda::kBlasFloat32),
                "cublasLtMatmulDescCreate");
    const auto set = [&](unsigned attribute, const auto& value) {
      calls.SetAttribute(blas_.MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute", product_,
                         attribute, value);
    };
    set(device::cuda::kBlasTransposeA, int32_t{p_.a.transposed});
    set(device::cuda::kBlasTransposeB, int32_t{p_.b.transposed});
    set(device::cuda::kBlasEpilogue, EpilogueOf(p_.epilogue));
    // To choose an algorithm, the library uses only the alignment of these addresses. Each run sets
    // the real addresses.
    const auto* const aligned = reinterpret_cast<const void*>(uintptr_t{p_.alignment});
    if (HasBias(p_.epilogue) || HasSums(p_.epilogue)) set(device::cuda::kBlasBiasPointer, aligned);
    if (HasBefore(p_.epilogue)) {
      set(device::cuda::kBlasAuxPointer, aligned);
      set(device::cuda::kBlasAuxLd, p_.ld_before);
    }
    const int64_t a_rows = p_.a.transposed ? p_.k : p_.m, a_cols = p_.m + p_.k - a_rows;
    const int64_t b_rows = p_.b.transposed ? p_.n : p_.k, b_cols = p_.n + p_.k - b_rows;
    MakeLayout(calls, &a_, {p_.factors, a_rows, a_cols, p_.a.ld, p_.a.batch_stride});
    MakeLayout(calls, &b_, {p_.factors, b_rows, b_cols, p_.b.ld, p_.b.batch_stride});
    MakeLayout(calls, &d_, {p_.result, p_.m, p_.n, p_.ldd, p_.batch_stride_d});
    RETURN_IF_ERROR(calls.status());
    return ChooseAlgorithm();
  }

  // Runs the product once. The result is not used, so all operands share the same memory, which is
  // large enough for the largest matrix.
  Status Rehearse() {
    if (!gpu_.rehearse) return OkStatus();
    constexpr size_t kAlignment = device::cuda::kBlasWorkspaceAlignment;
    const auto extent = [this](int64_t stride, int64_t cols, int64_t ld) {
      return (p_.batch - 1) * stride + cols * ld;
    };
    const int64_t a_cols = p_.a.transposed ? p_.m : p_.k, b_cols = p_.b.transposed ? p_.k : p_.n;
    const int64_t largest =
        std::max({ElementBytes(p_.factors) * extent(p_.a.batch_stride, a_cols, p_.a.ld),
                  ElementBytes(p_.factors) * extent(p_.b.batch_stride, b_cols, p_.b.ld),
                  ElementBytes(p_.result) * extent(p_.batch_stride_d, p_.n, p_.ldd),
                  ElementBytes(p_.result) * extent(0, p_.n, p_.ld_before)});
    const size_t bytes = (static_cast<size_t>(largest) + kAlignment - 1) / kAlignment * kAlignment;
    return gpu_.rehearse(bytes + workspace_bytes(), [&](void* memory, Stream& stream) {
      Run({.a = memory,
           .b = memory,
           .bias = memory,
           .d = memory,
           .sums = memory,
           .before = memory,
           .workspace = static_cast<std::byte*>(memory) + bytes},
          stream);
    });
  }

  size_t workspace_bytes() const override { return heuristic_.workspace_bytes; }

  void Run(const ProductOperands& operands, Stream& stream) override {
    Calls calls(blas_);
    gpu_.enter();
    const auto set = [&](unsigned attribute, const void* address) {
      calls.SetAttribute(blas_.MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute", product_,
                         attribute, address);
    };
    if (HasBias(p_.epilogue)) set(device::cuda::kBlasBiasPointer, operands.bias);
    if (HasSums(p_.epilogue)) set(device::cuda::kBlasBiasPointer, operands.sums);
    if (HasBefore(p_.epilogue)) set(device::cuda::kBlasAuxPointer, operands.before);
    calls.Check(blas_.Matmul(library_, product_, &p_.alpha, operands.a, a_, operands.b, b_,
                             &p_.beta, operands.d, d_, operands.d, d_, &heuristic_.algorithm,
                             operands.workspace, heuristic_.workspace_bytes, gpu_.handle(stream)),
                "cublasLtMatmul");
    if (!calls.status().ok()) gpu_.fail(calls.status());
  }

 private:
  // A matrix as it is stored.
  struct Stored {
    FloatType type;
    int64_t rows, cols, ld, stride;
  };

  void MakeLayout(Calls& calls, device::cuda::BlasLayoutHandle* layout, const Stored& matrix) {
    calls.Check(blas_.MatrixLayoutCreate(layout, BlasTypeOf(matrix.type),
                                         static_cast<uint64_t>(matrix.rows),
                                         static_cast<uint64_t>(matrix.cols), matrix.ld),
                "cublasLtMatrixLayoutCreate");
    const auto set = [&](unsigned attribute, const auto& value) {
      calls.SetAttribute(blas_.MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute",
                         *layout, attribute, value);
    };
    set(device::cuda::kBlasBatchCount, p_.batch);
    set(device::cuda::kBlasBatchStride, matrix.stride);
  }

  Status ChooseAlgorithm() {
    Calls calls(blas_);
    device::cuda::BlasPreferenceHandle preference = nullptr;
    calls.Check(blas_.MatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const auto set = [&](unsigned attribute, const auto& value) {
      calls.SetAttribute(blas_.MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute",
                         preference, attribute, value);
    };
    set(device::cuda::kBlasMaxWorkspace, kMaxWorkspace);
    // The parts of a sum must be added in a separate step, because only then are they added in a
    // fixed order.
    set(device::cuda::kBlasReductionSchemes, device::cuda::kBlasReduceInComputeType);
    for (unsigned matrix = 0; matrix < 4; ++matrix)
      set(device::cuda::kBlasAlignmentA + matrix, p_.alignment);
    int found = 0;
    if (calls.status().ok()) {
      const auto result = blas_.MatmulAlgoGetHeuristic(library_, product_, a_, b_, d_, d_,
                                                       preference, 1, &heuristic_, &found);
      // kBlasNotSupported means that there is no algorithm. It is not an error here: the check of
      // `found` below handles it, along with a success that yields no algorithm.
      if (result != device::cuda::kBlasNotSupported)
        calls.Check(result, "cublasLtMatmulAlgoGetHeuristic");
    }
    if (preference != nullptr) blas_.MatmulPreferenceDestroy(preference);
    RETURN_IF_ERROR(calls.status());
    if (found > 0 && heuristic_.state == kBlasSuccess) return OkStatus();
    return Unimplemented("cuBLASLt has no algorithm for a product of ", p_.m, " x ", p_.k, " by ",
                         p_.k, " x ", p_.n);
  }

  const BlasApi& blas_;
  const device::cuda::BlasHandle library_;
  const Products::Gpu gpu_;
  const ProductDescription p_;
  device::cuda::BlasProductHandle product_ = nullptr;
  device::cuda::BlasLayoutHandle a_ = nullptr, b_ = nullptr, d_ = nullptr;
  device::cuda::BlasHeuristic heuristic_{};
};

class BlasProducts final : public Products {
 public:
  BlasProducts(const BlasApi& blas, Gpu gpu) : blas_(blas), gpu_(std::move(gpu)) {}
  ~BlasProducts() override {
    gpu_.enter();
    if (handle_ != nullptr) blas_.Destroy(handle_);
  }

  Status Open() {
    gpu_.enter();
    return ToStatus(blas_, blas_.Create(&handle_), "cublasLtCreate");
  }

  StatusOr<std::unique_ptr<Product>> Prepare(const ProductDescription& product) override {
    RETURN_IF_ERROR(CheckProduct(product));
    gpu_.enter();
    auto prepared = std::make_unique<BlasProduct>(blas_, handle_, gpu_, product);
    RETURN_IF_ERROR(prepared->Open());
    RETURN_IF_ERROR(prepared->Rehearse());
    return prepared;
  }

 private:
  const BlasApi& blas_;
  const Gpu gpu_;
  device::cuda::BlasHandle handle_ = nullptr;
};

Status CheckFactor(const char* name, const Factor& factor, int64_t rows) {
  if (factor.ld < rows)
    return InvalidArgument("matrix ", name, " has ", rows, " rows, so its columns cannot begin ",
                           factor.ld, " elements apart");
  if (factor.batch_stride < 0)
    return InvalidArgument("matrix ", name, " has a batch stride of ", factor.batch_stride);
  return OkStatus();
}

const char* NameOf(FloatType type) {
  if (type == FloatType::kBFloat16) return "bfloat16";
  return type == FloatType::kFloat16 ? "float16" : "float32";
}

Status CheckTypes(const ProductDescription& p) {
  if (p.result != p.factors && p.result != FloatType::kFloat32)
    return InvalidArgument("a product of ", NameOf(p.factors), " numbers with a result of ",
                           NameOf(p.result), ": expected the same type or float32");
  if (p.factors != FloatType::kFloat32 && p.arithmetic != Arithmetic::kFloat32)
    return InvalidArgument("a product of ", NameOf(p.factors), " numbers with TF32");
  const auto least =
      static_cast<uint32_t>(std::min(ElementBytes(p.factors), ElementBytes(p.result)));
  if (p.alignment != least && p.alignment != 16)
    return InvalidArgument("an alignment of ", p.alignment, " bytes: expected ", least, " or 16");
  return OkStatus();
}

// Checks the value before GELU.
Status CheckBefore(const ProductDescription& p) {
  if (!HasBefore(p.epilogue)) return OkStatus();
  RETURN_IF_ERROR(CheckFactor("before GELU", {false, p.ld_before, 0}, p.m));
  if (p.ld_before % 8 != 0)
    return InvalidArgument("the columns of the value before GELU begin ", p.ld_before,
                           " elements apart: expected a multiple of 8");
  if (p.batch > 1) return InvalidArgument("GELU of a batch of ", p.batch, " products");
  return OkStatus();
}

}  // namespace

bool HasBias(ProductEpilogue epilogue) {
  return epilogue == ProductEpilogue::kBias || epilogue == ProductEpilogue::kReluBias ||
         epilogue == ProductEpilogue::kGeluBias;
}

bool HasSums(ProductEpilogue epilogue) {
  return epilogue == ProductEpilogue::kSumA || epilogue == ProductEpilogue::kSumB;
}

bool HasBefore(ProductEpilogue epilogue) {
  return epilogue == ProductEpilogue::kGelu || epilogue == ProductEpilogue::kGeluBias ||
         epilogue == ProductEpilogue::kGeluGradient;
}

Status CheckProduct(const ProductDescription& p) {
  for (const auto& [name, size] : {std::pair("m", p.m), {"n", p.n}, {"k", p.k}}) {
    if (size < 1 || size > kMostElements)
      return InvalidArgument("a product with ", name, " = ", size, ": expected 1 to ",
                             kMostElements);
  }
  RETURN_IF_ERROR(CheckFactor("a", p.a, p.a.transposed ? p.k : p.m));
  RETURN_IF_ERROR(CheckFactor("b", p.b, p.b.transposed ? p.n : p.k));
  RETURN_IF_ERROR(CheckFactor("d", {false, p.ldd, p.batch_stride_d}, p.m));
  if (p.batch < 1) return InvalidArgument("a batch of ", p.batch, " products");
  if (p.batch > 1 && HasSums(p.epilogue))
    return InvalidArgument("the sums of the factors of a batch of ", p.batch, " products");
  RETURN_IF_ERROR(CheckBefore(p));
  // The matrices of the result must be stored one after another, or their columns must be
  // interleaved.
  const int64_t matrix = (p.n - 1) * p.ldd + p.m;
  if (p.batch > 1 && p.batch_stride_d < matrix &&
      (p.batch_stride_d < p.m || p.ldd < (p.batch - 1) * p.batch_stride_d + p.m)) {
    return InvalidArgument("the matrices of the result overlap: they begin ", p.batch_stride_d,
                           " elements apart");
  }
  return CheckTypes(p);
}

StatusOr<std::shared_ptr<Products>> Products::Create(const BlasApi& blas, Gpu gpu) {
  auto products = std::make_shared<BlasProducts>(blas, std::move(gpu));
  RETURN_IF_ERROR(products->Open());
  return products;
}

}  // namespace tfjob::kernels::cuda
