// Computes matrix products of operands at any address, and the operations that follow a product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/kernels/cpu/products.h"
#include "runtime/kernels/cuda/product.h"
#include "runtime/kernels/cuda/table.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// The operations that follow a product.
struct Finish {
  bool bias = false;
  std::string activation;  // "", "Relu", "Sigmoid" or "Tanh"
};

// Describes a product of row-major matrices. The library reads matrices column by column, so it
// sees the transpose of each row-major matrix. It therefore computes c = a · b as cᵀ = bᵀ · aᵀ: the
// description's `a` is the second factor b, and the rows of its result are the columns of c. All
// matrices have the given type; `arithmetic` applies only to float32.
ProductDescription DescriptionOf(const cpu::ProductLayout& layout, FloatType type,
                                 Arithmetic arithmetic);

// Returns whether all addresses of matrices, bias and sums are multiples of 16.
bool IsAligned(const ProductOperands& operands);
// Returns the first address in the workspace that is sufficiently aligned for the library. A kernel
// whose product needs a workspace must request kBlasWorkspaceAlignment additional bytes.
void* AlignedWorkspace(void* workspace);

// Computes a product, and then the operations that follow it, in the memory of the result. The
// library's fast algorithms need aligned addresses. A plan usually aligns the operands, but a
// kernel must accept any address, so there are two variants of the product.
//
// Results of half types are rounded only once: if the library cannot add the bias, a kernel writes
// the bias to the result, and the product is then added to it. If a kernel computes Sigmoid or
// Tanh, the product is first stored as float32, in the workspace.
class FinishedProduct {
 public:
  // `product` must be described as aligned and must not have an epilogue. `out` is the result,
  // which contains all products of the batch. The bias has out.cols() elements.
  static StatusOr<std::unique_ptr<FinishedProduct>> Prepare(const GpuAccess& gpu,
                                                            const ProductDescription& product,
                                                            const Finish& finish,
                                                            const Operand& out);

  // Returns the size of the workspace, including the bytes that are needed to align it.
  size_t workspace_bytes() const;
  // Submits the product. operands.workspace must have workspace_bytes() bytes, at an address that
  // is a multiple of 64.
  void Run(ProductOperands operands, Stream& stream) const;

 private:
  // A product, and the elementwise programs before and after it, which may be null. The input of
  // `before` is the bias. The inputs of `after` are the product and the bias.
  struct Variant {
    std::unique_ptr<Product> product;
    std::unique_ptr<Kernel> before, after;
  };
  // Prepares a product, whose result is stored as `stored`, and the kernels that write `out`: they
  // perform `rest`, the operations that the library does not perform.
  static StatusOr<Variant> PrepareVariant(const GpuAccess& gpu, ProductDescription product,
                                          Finish rest, const Operand& stored, const Operand& out);

  FinishedProduct(Variant aligned, Variant unaligned, size_t stored_bytes)
      : aligned_(std::move(aligned)),
        unaligned_(std::move(unaligned)),
        stored_bytes_(stored_bytes) {}

  // Returns the size of the library's workspace, rounded up so that an aligned address can follow.
  size_t library_bytes() const;

  const Variant aligned_, unaligned_;
  const size_t stored_bytes_;  // of the product, if it is stored in the workspace
};

}  // namespace tfjob::kernels::cuda
