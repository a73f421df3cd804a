// Computes c = alpha · op(a) · op(b) + beta · c for row-major matrices with row strides, where
// op(x) is x or its transpose. Uses oneDNN's sgemm for float, and plain loops for double, which
// only gradient checks need.
//
// Uses only the calling thread (one_thread.h); callers must divide large products into blocks. In
// each call, oneDNN allocates and frees packing buffers and small objects.
#pragma once

#include <cstdint>

namespace tfjob::kernels::cpu {

template <typename T>
struct Matrix {
  T* data;
  int64_t row_stride;
  bool transposed = false;  // the transposed matrix is stored
};

void Gemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix<const float> a,
          Matrix<const float> b, float beta, Matrix<float> c);
void Gemm(int64_t m, int64_t n, int64_t k, double alpha, Matrix<const double> a,
          Matrix<const double> b, double beta, Matrix<double> c);

}  // namespace tfjob::kernels::cpu
