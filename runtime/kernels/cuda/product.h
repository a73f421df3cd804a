// Computes matrix products with cuBLASLt. A ProductDescription describes a product in the library's
// terms, and is the only input from which the library's descriptors are created.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/device/cuda/blas_api.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cuda {

// How the library multiplies float32 numbers. TF32 keeps 10 bits of each factor's mantissa, and is
// several times as fast. The setting does not affect half types, whose products are exact and are
// added in float32.
enum class Arithmetic { kFloat32, kTf32 };

// The operations that the library performs on a product. kSumA and kSumB do not change the product,
// but also sum one of the factors: kSumA sums the k elements of each row of a, and kSumB the k
// elements of each column of b. If this factor is the gradient of a layer's output, the sums are
// the gradient of the layer's bias. kGelu and kGeluBias compute the approximate GELU
// (graph/gelu.h), and also store the value before GELU, as another matrix. kGeluGradient reads this
// matrix, and multiplies the product by the derivative of GELU.
enum class ProductEpilogue {
  kNone,
  kRelu,
  kBias,
  kReluBias,
  kSumA,
  kSumB,
  kGelu,
  kGeluBias,
  kGeluGradient
};

// Return whether the epilogue reads a bias, whether it writes sums, and whether it writes or reads
// the value before GELU.
bool HasBias(ProductEpilogue epilogue);
bool HasSums(ProductEpilogue epilogue);
bool HasBefore(ProductEpilogue epilogue);

// A factor, as it is stored.
struct Factor {
  bool transposed = false;
  int64_t ld = 0;            // the distance between columns, in elements
  int64_t batch_stride = 0;  // the distance between matrices; 0: all products use the same matrix
};

// Describes d[m,n] = epilogue(alpha · a[m,k] · b[k,n] + beta · d) for a batch of matrices, which
// are stored column by column. If a factor is transposed, it is stored as [k,m] or [n,k]. The bias
// has m elements; bias[i] is added to row i. There are m sums for kSumA, and n sums for kSumB.
struct ProductDescription {
  int64_t m = 0, n = 0, k = 0;
  Factor a, b;
  int64_t ldd = 0, batch_stride_d = 0;
  int64_t ld_before = 0;  // the distance between columns of the value before GELU, if there is one
  int32_t batch = 1;
  float alpha = 1, beta = 0;
  ProductEpilogue epilogue = ProductEpilogue::kNone;
  FloatType factors = FloatType::kFloat32;  // the type of a and b
  // The type of d, the bias and the sums: `factors` or float32.
  FloatType result = FloatType::kFloat32;
  Arithmetic arithmetic = Arithmetic::kFloat32;
  uint32_t alignment = 16;  // all addresses are multiples of this number
};

// Returns the size of an element in bytes.
constexpr int64_t ElementBytes(FloatType type) {
  return type == FloatType::kFloat32 ? 4 : 2;
}

// Returns InvalidArgument if the description breaks a rule of the library's manual. The library
// itself does not check most of these rules. The message names the field.
Status CheckProduct(const ProductDescription& product);

// The addresses that a product uses.
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* d = nullptr;
  void* sums = nullptr;
  void* before = nullptr;     // the value before GELU
  void* workspace = nullptr;  // a multiple of kBlasWorkspaceAlignment
};

// A product with its descriptors and its algorithm. Only one thread at a time may use it.
class Product {
 public:
  virtual ~Product() = default;

  virtual size_t workspace_bytes() const = 0;
  // Submits the product. If this fails, passes the error to Products::Gpu::fail.
  virtual void Run(const ProductOperands& operands, Stream& stream) = 0;
};

// Prepares products on one GPU. Thread-safe.
class Products {
 public:
  // The functions through which products use the GPU's runtime.
  struct Gpu {
    // Makes the library's functions use this GPU when called on this thread.
    std::function<void()> enter;
    std::function<device::cuda::StreamHandle(Stream&)> handle;
    // Called with the error of each failed submission.
    std::function<void(const Status&)> fail;
    // Calls run(memory, stream), where `memory` contains `bytes` zeros, and waits until the
    // submitted work has run. If empty, products are not run when they are prepared.
    std::function<Status(size_t bytes, const std::function<void(void*, Stream&)>& run)> rehearse;
  };
  virtual ~Products() = default;

  // Creates a handle of the library. The library must outlive the result.
  static StatusOr<std::shared_ptr<Products>> Create(const device::cuda::BlasApi& blas, Gpu gpu);

  // Prepares a product. Also runs it once, because the first run may load a kernel, which is not
  // allowed during a capture. Returns InvalidArgument if CheckProduct does, and Unimplemented if
  // the library has no algorithm that adds in a fixed order.
  virtual StatusOr<std::unique_ptr<Product>> Prepare(const ProductDescription& product) = 0;
};

}  // namespace tfjob::kernels::cuda
