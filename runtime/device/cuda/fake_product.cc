#include "runtime/device/cuda/fake_product.h"

#include <bit>
#include <cmath>

namespace tfjob::device::cuda {
namespace {

// TF32 has 10 bits of mantissa.
float Rounded(float value, unsigned compute) {
  if (compute != kBlasComputeTf32 || value != value) return value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000) & ~0x1fffU);
}

void NoteReads(const FakeAccesses& accesses, const void* matrix, const FakeLayout& layout,
               int64_t number) {
  if (!accesses.reads) return;
  for (int64_t col = 0; col < layout.cols; ++col)
    accesses.reads(layout.At(matrix, number * layout.stride + col * layout.ld),
                   layout.bytes(layout.rows));
}

// Returns the element in row `row` and column `i` of the factor A, after its transposition.
double FactorA(const FakeCall& call, int64_t number, int64_t row, int64_t i) {
  const auto& [product, a, b, c, d] = call.problem;
  const int64_t at = product.transpose_a != 0 ? row * a.ld + i : i * a.ld + row;
  return Rounded(ValueAt(call.a, a, number * a.stride + at), product.compute);
}

double FactorB(const FakeCall& call, int64_t number, int64_t i, int64_t col) {
  const auto& [product, a, b, c, d] = call.problem;
  const int64_t at = product.transpose_b != 0 ? i * b.ld + col : col * b.ld + i;
  return Rounded(ValueAt(call.b, b, number * b.stride + at), product.compute);
}

int64_t InnerSize(const FakeProblem& p) {
  return p.product.transpose_a != 0 ? p.a.rows : p.a.cols;
}

// Computes one element of the result before the epilogue.
double Element(const FakeCall& call, int64_t number, int64_t row, int64_t col) {
  const FakeLayout& d = call.problem.d;
  const int64_t inner = InnerSize(call.problem);
  double sum = 0;
  for (int64_t i = 0; i < inner; ++i)
    sum += FactorA(call, number, row, i) * FactorB(call, number, i, col);
  sum *= call.alpha;
  // If beta is 0, C is not read, so it may contain NaN.
  if (call.beta != 0)
    sum +=
        static_cast<double>(call.beta) * ValueAt(call.d, d, number * d.stride + col * d.ld + row);
  return sum;
}

// Writes the sums of the epilogue, if it has any. The manual does not say whether they are computed
// from factors that are rounded to TF32; the fake rounds them.
void ComputeSums(const FakeCall& call, const FakeAccesses& accesses) {
  const FakeProblem& p = call.problem;
  if (!p.product.has_sums()) return;
  auto* const sums = static_cast<std::byte*>(const_cast<void*>(call.bias));
  for (int64_t at = 0; at < call.bias_count(); ++at) {
    double sum = 0;
    for (int64_t i = 0; i < InnerSize(p); ++i)
      sum += p.product.sums_a() ? FactorA(call, 0, at, i) : FactorB(call, 0, i, at);
    StoreValue(sums + p.d.bytes(at), p.d, static_cast<float>(sum));
  }
  if (accesses.wrote) accesses.wrote(sums, p.d.bytes(call.bias_count()));
}

// The approximation of GELU with tanh, and its derivative. The manual does not say which GELU the
// library computes, but programs that compare its results do (docs/adr).
double Gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
double GeluDerivative(double x) {
  const double tanh = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  const double inner = 0.7978845608028654 * (1 + 0.134145 * x * x);
  return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner;
}

// Returns the result for one element of the product, to which the bias has been added. Reads or
// writes the element's place in the auxiliary matrix.
double Finished(const FakeCall& call, double value, int64_t row, int64_t col) {
  const FakeProduct& product = call.problem.product;
  if (product.has_relu() && value < 0) return 0;
  if (!product.has_aux()) return value;
  const FakeLayout aux = call.problem.aux();
  const int64_t at = col * aux.ld + row;
  if (product.has_gelu_gradient()) return value * GeluDerivative(ValueAt(call.aux, aux, at));
  auto* const stored = static_cast<std::byte*>(const_cast<void*>(call.aux));
  StoreValue(stored + aux.bytes(at), aux, static_cast<float>(value));
  return Gelu(value);
}

}  // namespace

void ComputeFakeProduct(const FakeCall& call, const FakeAccesses& accesses) {
  const auto& [product, a, b, c, d] = call.problem;
  for (int64_t number = 0; number < d.batch; ++number) {
    NoteReads(accesses, call.a, a, number);
    NoteReads(accesses, call.b, b, number);
    if (call.beta != 0) NoteReads(accesses, call.d, d, number);
  }
  if (product.has_gelu_gradient()) NoteReads(accesses, call.aux, call.problem.aux(), 0);
  if (product.has_bias() && accesses.reads) accesses.reads(call.bias, d.bytes(d.rows));
  ComputeSums(call, accesses);
  for (int64_t number = 0; number < d.batch; ++number) {
    for (int64_t col = 0; col < d.cols; ++col) {
      std::byte* const to =
          static_cast<std::byte*>(call.d) + d.bytes(number * d.stride + col * d.ld);
      for (int64_t row = 0; row < d.rows; ++row) {
        double value = Element(call, number, row, col);
        if (product.has_bias()) value += ValueAt(call.bias, d, row);
        StoreValue(to + d.bytes(row), d, static_cast<float>(Finished(call, value, row, col)));
      }
      if (!accesses.wrote) continue;
      accesses.wrote(to, d.bytes(d.rows));
      if (product.has_gelu())
        accesses.wrote(call.problem.aux().At(call.aux, col * product.aux_ld), d.bytes(d.rows));
    }
  }
}

}  // namespace tfjob::device::cuda
