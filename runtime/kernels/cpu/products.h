// Reads requests for matrix products: determines which matrices are multiplied, and how they are
// stored.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

// Describes the product of a MatMul, FusedMatMul or MatMulAccumulate: c[m,n] = a[m,k] · b[k,n]. A
// transposed factor is stored as [k,m] or [n,k]. Strides are at least 1, even for empty matrices.
struct ProductLayout {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
};
// Reads the request. Returns InvalidArgument if the first two inputs and the output have
// incompatible shapes or different dtypes.
StatusOr<ProductLayout> ProductLayoutOf(const KernelRequest& request);

// Describes one operand of BatchMatMulV2: matrices [rows, cols], and the distances between them in
// elements.
struct Matrices {
  std::vector<int64_t> batch, strides;  // one element per batch axis
  int64_t rows = 0, cols = 0, row_stride = 1;
};

struct BatchLayout {
  std::vector<int64_t> batch;                      // the output's axes except the last two
  std::vector<int64_t> x_steps, y_steps, z_steps;  // distances between matrices, one per axis
  Matrices x, y, z;
  bool adj_x = false, adj_y = false;
  int64_t m = 0, n = 0, k = 0;
};
// Reads the request. Returns InvalidArgument if the operands have incompatible shapes or different
// dtypes.
StatusOr<BatchLayout> BatchLayoutOf(const KernelRequest& request);

}  // namespace tfjob::kernels::cpu
