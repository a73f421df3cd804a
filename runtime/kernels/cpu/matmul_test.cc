#include <gtest/gtest.h>

#include <cmath>

#include "runtime/kernels/cpu/check.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

Tensor Product(const Tensor& a, bool ta, const Tensor& b, bool tb) {
  const int64_t m = a.shape().dim(ta ? 1 : 0), k = a.shape().dim(ta ? 0 : 1);
  const int64_t n = b.shape().dim(tb ? 0 : 1);
  Tensor c(a.dtype(), Shape({m, n}));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += ValueAt(a, ta ? p * m + i : i * k + p) * ValueAt(b, tb ? j * k + p : p * n + j);
      }
      SetValue(c, i * n + j, sum);
    }
  }
  return c;
}

struct Sizes {
  int64_t m, k, n;
};
// The product with 131 rows and 257 columns is large enough to be divided among threads. It is
// divided by columns.
const std::vector<Sizes> kSizes = {{1, 1, 1},      {3, 5, 7},    {17, 33, 10}, {32, 64, 48},
                                   {0, 4, 3},      {4, 0, 3},    {4, 3, 0},    {1, 100, 1},
                                   {131, 70, 257}, {300, 40, 90}};

template <typename Body>
void ForEveryProduct(const Body& body) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Sizes& s : kSizes) {
      for (bool ta : {false, true}) {
        for (bool tb : {false, true}) {
          const Tensor a = Values(dtype, ta ? Shape({s.k, s.m}) : Shape({s.m, s.k}), 1, -1, 1);
          const Tensor b = Values(dtype, tb ? Shape({s.n, s.k}) : Shape({s.k, s.n}), 2, -1, 1);
          body(Attributes{{"transpose_a", ta}, {"transpose_b", tb}}, a, b, Product(a, ta, b, tb));
        }
      }
    }
  }
}

TEST(MatMulTest, MultipliesEverySizeAndTransposition) {
  ForEveryProduct([](const Attributes& attributes, const Tensor& a, const Tensor& b,
                     const Tensor& c) { Check({"MatMul", attributes, {a, b}, {c}, 1e-5}); });
}

TEST(MatMulTest, TakesLeadingAxesAsRows) {
  const Tensor a = Values(D::kFloat32, Shape({2, 3, 5}), 1, -1, 1);
  const Tensor b = Values(D::kFloat32, Shape({2, 3, 7}), 2, -1, 1);
  const Tensor weights = Values(D::kFloat32, Shape({5, 7}), 3, -1, 1);
  const auto shaped = [](const Tensor& tensor, Shape shape) {
    Tensor copy(tensor.dtype(), std::move(shape));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) SetValue(copy, i, ValueAt(tensor, i));
    return copy;
  };
  const Tensor product = Product(shaped(a, Shape({6, 5})), false, weights, false);
  Check({"MatMul", {}, {a, weights}, {shaped(product, Shape({2, 3, 7}))}, 1e-5});
  Check({"MatMul",
         {{"transpose_a", true}},
         {a, b},
         {Product(shaped(a, Shape({6, 5})), true, shaped(b, Shape({6, 7})), false)},
         1e-5});
}

// Compares the op with plain loops that multiply the matrices of x [2,1,m,k] and y [3,k,n] to get z
// [2,3,m,n].
TEST(BatchMatMulTest, BroadcastsTransposesAndExchangesAxes) {
  for (const auto& [m, n, k] :
       {std::tuple{5, 7, 3}, {1, 1, 1}, {130, 90, 50}, {0, 2, 3}, {2, 3, 0}}) {
    for (int bits = 0; bits < 32; ++bits) {
      const bool ax = bits & 1, ay = bits & 2, sx = bits & 4, sy = bits & 8, sz = bits & 16;
      if (m > 100 && bits % 5 != 0) continue;
      const int64_t xr = ax ? k : m, xc = ax ? m : k, yr = ay ? n : k, yc = ay ? k : n;
      const Tensor x = Values(D::kFloat64, sx ? Shape({2, xr, 1, xc}) : Shape({2, 1, xr, xc}), 1);
      const Tensor y = Values(D::kFloat64, sy ? Shape({yr, 3, yc}) : Shape({3, yr, yc}), 2);
      Tensor z(D::kFloat64, sz ? Shape({2, m, 3, n}) : Shape({2, 3, m, n}));
      for (int64_t f = 0; f < 2; ++f) {
        for (int64_t g = 0; g < 3; ++g) {
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0;
              for (int64_t p = 0; p < k; ++p) {
                const int64_t row_x = ax ? p : i, col_x = ax ? i : p;
                const int64_t row_y = ay ? j : p, col_y = ay ? p : j;
                sum += ValueAt(x, (f * xr + row_x) * xc + col_x) *
                       ValueAt(y, (sy ? row_y * 3 + g : g * yr + row_y) * yc + col_y);
              }
              SetValue(z, (sz ? (f * m + i) * 3 + g : (f * 3 + g) * m + i) * n + j, sum);
            }
          }
        }
      }
      Check({"BatchMatMulV2",
             {{"adj_x", ax}, {"adj_y", ay}, {"swap_x", sx}, {"swap_y", sy}, {"swap_z", sz}},
             {x, y},
             {z},
             1e-3});
    }
  }
  const Operand x = Operand::Dense(D::kFloat32, Shape({2, 3, 4}));
  const Operand y = Operand::Dense(D::kFloat32, Shape({3, 4, 5}));
  const Operand z = Operand::Dense(D::kFloat32, Shape({2, 3, 5}));
  EXPECT_EQ(PrepareError("BatchMatMulV2", {}, {x, y}, {z}).code(), StatusCode::kInvalidArgument);
}

TEST(MatMulTest, FusesBiasAndActivation) {
  const std::vector<std::pair<std::string, double (*)(double)>> activations = {
      {"", [](double x) { return x; }},
      {"Relu", [](double x) { return x > 0 ? x : 0; }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Tanh", [](double x) { return std::tanh(x); }}};
  ForEveryProduct([&](Attributes attributes, const Tensor& a, const Tensor& b, const Tensor& c) {
    const Tensor bias = Values(c.dtype(), Shape({c.shape().dim(1)}), 3);
    for (const auto& [name, f] : activations) {
      Tensor with_bias = c.Clone(), without = c.Clone();
      for (int64_t i = 0; i < c.num_elements(); ++i) {
        SetValue(with_bias, i, f(ValueAt(c, i) + ValueAt(bias, i % c.shape().dim(1))));
        SetValue(without, i, f(ValueAt(c, i)));
      }
      attributes.Set("activation", name);
      attributes.Set("bias", true);
      Check({"FusedMatMul", attributes, {a, b, bias}, {with_bias}, 1e-5});
      attributes.Set("bias", false);
      Check({"FusedMatMul", attributes, {a, b}, {without}, 1e-5});
    }
  });
}

TEST(MatMulTest, AccumulatesIntoAVariable) {
  ForEveryProduct([](Attributes attributes, const Tensor& a, const Tensor& b, const Tensor& c) {
    const Tensor variable = Values(c.dtype(), c.shape(), 4);
    Tensor expected = c.Clone();
    for (int64_t i = 0; i < c.num_elements(); ++i) {
      SetValue(expected, i, ValueAt(variable, i) - 0.25 * ValueAt(c, i));
    }
    attributes.Set("alpha", -0.25);
    Check({"MatMulAccumulate", attributes, {a, b, variable}, {expected}, 1e-5});
  });
}

TEST(MatMulTest, RefusesMatricesThatDoNotFit) {
  auto matrix = [](int64_t rows, int64_t cols) {
    return Operand::Dense(D::kFloat32, Shape({rows, cols}));
  };
  EXPECT_EQ(PrepareError("MatMul", {}, {matrix(2, 3), matrix(4, 5)}, {matrix(2, 5)}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(PrepareError("MatMul", {}, {matrix(2, 3), matrix(3, 5)}, {matrix(5, 2)}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(PrepareError("FusedMatMul", {{"activation", std::string("Gelu")}},
                         {matrix(2, 3), matrix(3, 5)}, {matrix(2, 5)})
                .code(),
            StatusCode::kUnimplemented);
}

TEST(BiasTest, AddsToEveryRowAndSumsOverRows) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : {Shape({7, 19}), Shape({2, 3, 5}), Shape({130, 301}), Shape({0, 4}),
                               Shape({6}), Shape({3, 10})}) {
      const int64_t cols = shape.dim(-1);
      const Tensor x = Values(dtype, shape, 1), bias = Values(dtype, Shape({cols}), 2);
      Tensor sum = x.Clone(), total(dtype, Shape({cols}));
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        SetValue(sum, i, ValueAt(x, i) + ValueAt(bias, i % cols));
        SetValue(total, i % cols, ValueAt(total, i % cols) + ValueAt(x, i));
      }
      Check({"BiasAdd", {}, {x, bias}, {sum}});
      Check({"BiasAddGrad", {}, {x}, {total}, 1e-5});
    }
  }
}

}  // namespace
}  // namespace tfjob::kernels::cpu
