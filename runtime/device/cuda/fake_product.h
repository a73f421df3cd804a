// Defines the products of the fake library (fake_blas.h), and computes them with plain loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/device/cuda/blas_api.h"
#include "runtime/device/cuda/fake_layout.h"

namespace tfjob::device::cuda {

// A product's descriptor.
struct FakeProduct {
  unsigned compute = 0;
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = kBlasEpilogueNone;
  const void* bias = nullptr;
  const void* aux = nullptr;
  int64_t aux_ld = 0;

  bool has_bias() const { return (epilogue & kBlasEpilogueBias) != 0; }
  bool has_gelu() const {
    return epilogue == kBlasEpilogueGelu || epilogue == kBlasEpilogueGeluBias;
  }
  bool has_gelu_gradient() const { return epilogue == kBlasEpilogueGeluGradient; }
  bool has_aux() const { return has_gelu() || has_gelu_gradient(); }
  bool sums_a() const { return epilogue == kBlasEpilogueBiasGradientA; }
  bool sums_b() const { return epilogue == kBlasEpilogueBiasGradientB; }
  bool has_sums() const { return sums_a() || sums_b(); }
  bool has_relu() const { return (epilogue & kBlasEpilogueRelu) != 0; }
};

// A product with its layouts.
struct FakeProblem {
  FakeProduct product;
  FakeLayout a, b, c, d;

  // Returns the layout of the auxiliary matrix.
  FakeLayout aux() const {
    return {.type = d.type, .rows = d.rows, .cols = d.cols, .ld = product.aux_ld};
  }
};

// The arguments of a call.
struct FakeCall {
  FakeProblem problem;
  float alpha = 1, beta = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // or the address of the sums
  const void* aux = nullptr;
  void* d = nullptr;

  // Returns the number of elements of the bias or the sums.
  int64_t bias_count() const { return problem.product.sums_b() ? problem.d.cols : problem.d.rows; }
};

// Called with an address and a number of bytes: `reads` before these bytes are read, `wrote` after
// they have been written. Either may be empty.
struct FakeAccesses {
  std::function<void(const void*, size_t)> reads, wrote;
};

// Computes a product, with its epilogue. The addresses of the call must be those at which the host
// can read and write the operands.
void ComputeFakeProduct(const FakeCall& call, const FakeAccesses& accesses);

}  // namespace tfjob::device::cuda
