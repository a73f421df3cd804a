// Provides matrix products for operands at any address, and the operations that follow a product.
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

// Describes a product of row-major matrices. The library stores matrices column by column, so it
// sees each of them as its transpose: to compute c = a · b, it multiplies b by a. Hence the
// description's `a` is the second factor, and its rows are the columns of c.
ProductDescription DescriptionOf(const cpu::ProductLayout& layout, Arithmetic arithmetic);

// Computes a product, and the operations that follow it in the memory of its result. The library's
// fast algorithms need aligned addresses. The plan usually aligns them, but a kernel must accept
// all addresses, so the product is prepared for both.
class FinishedProduct {
 public:
  // `product` must have no epilogue and be aligned. `out` is the result: all products of the batch,
  // whose columns follow each other. The bias has out.cols() elements.
  static StatusOr<std::unique_ptr<FinishedProduct>> Prepare(const GpuAccess& gpu,
                                                            const ProductDescription& product,
                                                            const Finish& finish,
                                                            const Operand& out);

  // Includes what it takes to align the workspace.
  size_t workspace_bytes() const;
  // operands.workspace has this many bytes, and is a multiple of 64.
  void Run(ProductOperands operands, Stream& stream) const;

 private:
  // A product, and the elementwise program that follows it (null: none). The program's inputs are
  // the product and the bias.
  struct Variant {
    std::unique_ptr<Product> product;
    std::unique_ptr<Kernel> program;
  };
  // Prepares a product and a kernel for `rest`, the operations that the library does not perform.
  static StatusOr<Variant> PrepareVariant(const GpuAccess& gpu, const ProductDescription& product,
                                          const Finish& rest, const Operand& out);

  FinishedProduct(Variant aligned, Variant unaligned)
      : aligned_(std::move(aligned)), unaligned_(std::move(unaligned)) {}

  const Variant aligned_, unaligned_;
};

}  // namespace tfjob::kernels::cuda
