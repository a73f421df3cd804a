#include "runtime/kernels/cuda/checks/product_cases.h"

#include <utility>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {

Comparison MatMulCase(const std::string& op, int64_t m, int64_t n, int64_t k,
                      Attributes attributes) {
  const bool ta = attributes.Get("transpose_a", false), tb = attributes.Get("transpose_b", false);
  Comparison comparison{
      .op = op,
      .attributes = attributes,
      .inputs = {{ta ? Shape({k, m}) : Shape({m, k})}, {tb ? Shape({n, k}) : Shape({k, n})}},
      .outputs = {{Shape({m, n})}},
      .tolerance = kProductTolerance};
  if (attributes.Get("bias", false)) comparison.inputs.push_back({Shape({n})});
  if (op == "MatMulAccumulate" || op == "MatMulAdd" || op == "MatMulGeluGrad")
    comparison.inputs.push_back({Shape({m, n})});
  if (op == "MatMulGelu") comparison.outputs.push_back({Shape({m, n})});
  if (op == "MatMulBiasGrad")
    comparison.outputs.push_back({Shape({attributes.Get("summed", int64_t{1}) == 0 ? m : n})});
  return comparison;
}

Comparison BatchMatMulCase(int64_t m, int64_t n, int64_t k, int bits) {
  const bool ax = bits & 1, ay = bits & 2, sx = bits & 4, sy = bits & 8, sz = bits & 16;
  const int64_t xr = ax ? k : m, xc = ax ? m : k, yr = ay ? n : k, yc = ay ? k : n;
  return {
      .op = "BatchMatMulV2",
      .attributes = {{"adj_x", ax}, {"adj_y", ay}, {"swap_x", sx}, {"swap_y", sy}, {"swap_z", sz}},
      .inputs = {{sx ? Shape({2, xr, 1, xc}) : Shape({2, 1, xr, xc})},
                 {sy ? Shape({yr, 3, yc}) : Shape({3, yr, yc})}},
      .outputs = {{sz ? Shape({2, m, 3, n}) : Shape({2, 3, m, n})}},
      .tolerance = kProductTolerance};
}

std::vector<Attributes> Transpositions() {
  std::vector<Attributes> all;
  for (const bool a : {false, true})
    for (const bool b : {false, true}) all.push_back({{"transpose_a", a}, {"transpose_b", b}});
  return all;
}

std::vector<Comparison> FusedMatMulCases(int64_t m, int64_t n, int64_t k) {
  std::vector<Comparison> all;
  for (const char* activation : {"", "Relu", "Sigmoid", "Tanh"}) {
    for (const bool bias : {false, true}) {
      all.push_back(MatMulCase("FusedMatMul", m, n, k,
                               {{"bias", bias}, {"activation", std::string(activation)}}));
    }
  }
  return all;
}

std::vector<Comparison> BiasGradCases(int64_t m, int64_t n, int64_t k) {
  std::vector<Comparison> all;
  for (const bool other : {false, true}) {
    all.push_back(MatMulCase("MatMulBiasGrad", m, n, k, {{"transpose_a", other}}));
    all.push_back(
        MatMulCase("MatMulBiasGrad", m, n, k,
                   {{"transpose_a", true}, {"transpose_b", other}, {"summed", int64_t{0}}}));
  }
  return all;
}

// The library can compute GELU if the columns of the value before it begin at multiples of 8. If
// separate kernels compute GELU of a half type, they read a product that is already rounded.
std::vector<Comparison> GeluCases(int64_t m, int64_t n, int64_t k) {
  std::vector<Comparison> all;
  for (const bool any_stride : {false, true}) {
    const int64_t stride = any_stride ? 0 : (n + 7) / 8 * 8;
    for (const bool bias : {false, true}) {
      all.push_back(MatMulCase("MatMulGelu", m, n, k, {{"bias", bias}, {"transpose_b", !bias}}));
      all.back().outputs[1].row_stride = stride;
    }
    for (const bool a : {false, true}) {
      all.push_back(
          MatMulCase("MatMulGeluGrad", m, n, k, {{"transpose_a", a}, {"transpose_b", !a}}));
      all.back().inputs[2].row_stride = stride;
    }
  }
  for (Comparison& comparison : all) comparison.floor = 8;
  return all;
}

std::vector<Comparison> MatMulCases(uint64_t seed) {
  PhiloxStream random(seed);
  const int64_t m = Draw(random, {1, 2, 16, 33}), n = Draw(random, {1, 3, 10, 32});
  const int64_t k = Draw(random, {1, 4, 31, 64});
  std::vector<Comparison> all = FusedMatMulCases(m, n, k);
  for (Comparison& comparison : BiasGradCases(m, n, k)) all.push_back(std::move(comparison));
  for (Comparison& comparison : GeluCases(m, n, k)) all.push_back(std::move(comparison));
  for (Attributes attributes : Transpositions()) {
    all.push_back(MatMulCase("MatMul", m, n, k, attributes));
    all.push_back(MatMulCase("MatMulAdd", m, n, k, attributes));
    attributes.Set("alpha", -0.25);
    all.push_back(MatMulCase("MatMulAccumulate", m, n, k, attributes));
    all.push_back(all.back());  // the same with half types as factors
    for (const size_t factor : {0, 1})
      all.back().inputs[factor].dtype = seed % 2 == 0 ? DType::kBFloat16 : DType::kFloat16;
  }
  return all;
}

std::vector<Comparison> BatchMatMulCases(uint64_t seed) {
  const int bits = static_cast<int>(seed % 32);
  return {BatchMatMulCase(5, 7, 3, bits), BatchMatMulCase(1, 1, 1, bits),
          BatchMatMulCase(8, 4, 16, bits)};
}

}  // namespace tfjob::kernels::cuda
