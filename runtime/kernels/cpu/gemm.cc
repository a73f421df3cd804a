#include "runtime/kernels/cpu/gemm.h"

#include <dnnl.h>

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/kernels/cpu/one_thread.h"

namespace tfjob::kernels::cpu {
namespace {

template <typename T>
void Scale(int64_t m, int64_t n, T beta, Matrix<T> c) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c.data + i * c.row_stride;
    // If beta is 0, do not multiply the old value, which may be NaN.
    for (int64_t j = 0; j < n; ++j) row[j] = beta == 0 ? T{0} : row[j] * beta;
  }
}

char Letter(bool transposed) {
  return transposed ? 'T' : 'N';
}

}  // namespace

void Gemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix<const float> a,
          Matrix<const float> b, float beta, Matrix<float> c) {
  if (m == 0 || n == 0) return;
  if (k == 0) return Scale(m, n, beta, c);
  KeepOneDnnOnThisThread();
  const dnnl_status_t status =
      dnnl_sgemm(Letter(a.transposed), Letter(b.transposed), m, n, k, alpha, a.data, a.row_stride,
                 b.data, b.row_stride, beta, c.data, c.row_stride);
  ENFORCE(status == dnnl_success, "oneDNN refuses only wrong sizes, and those were checked");
}

void Gemm(int64_t m, int64_t n, int64_t k, double alpha, Matrix<const double> a,
          Matrix<const double> b, double beta, Matrix<double> c) {
  Scale(m, n, beta, c);
  const int64_t b_row = b.transposed ? 1 : b.row_stride, b_col = b.transposed ? b.row_stride : 1;
  for (int64_t i = 0; i < m; ++i) {
    double* row = c.data + i * c.row_stride;
    for (int64_t p = 0; p < k; ++p) {
      const double value =
          alpha * (a.transposed ? a.data[p * a.row_stride + i] : a.data[i * a.row_stride + p]);
      for (int64_t j = 0; j < n; ++j) row[j] += value * b.data[p * b_row + j * b_col];
    }
  }
}

}  // namespace tfjob::kernels::cpu
