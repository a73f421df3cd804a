#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/check.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

struct Fold {
  double start;
  double (*combine)(double, double);
  bool mean = false;
};

Tensor Reduced(const Tensor& x, const std::vector<int64_t>& axes, bool keep, const Fold& fold) {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides(static_cast<size_t>(x.shape().rank()));
  int64_t stride = 1, count = 1;
  for (int d = x.shape().rank() - 1; d >= 0; --d) {
    const bool reduced = std::ranges::count(axes, d) > 0;
    strides[static_cast<size_t>(d)] = reduced ? 0 : stride;
    (reduced ? count : stride) *= x.shape().dim(d);
    if (!reduced || keep) dims.insert(dims.begin(), reduced ? 1 : x.shape().dim(d));
  }
  Tensor y(x.dtype(), Shape(dims));
  std::vector<double> values(static_cast<size_t>(y.num_elements()), fold.start);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    int64_t rest = i;
    size_t at = 0;
    for (int d = x.shape().rank() - 1; d >= 0; --d) {
      at += static_cast<size_t>(rest % x.shape().dim(d) * strides[static_cast<size_t>(d)]);
      rest /= x.shape().dim(d);
    }
    values[at] = fold.combine(values[at], ValueAt(x, i));
  }
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    const double value = values[static_cast<size_t>(i)];
    SetValue(y, i, fold.mean ? value / static_cast<double>(count) : value);
  }
  return y;
}

void CheckReduce(const std::string& op, const Fold& fold, const std::vector<D>& dtypes) {
  const std::vector<std::vector<int64_t>> axes = {{},     {0},    {1},    {2},
                                                  {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};
  for (D dtype : dtypes) {
    for (const Shape& shape : {Shape({3, 5, 7}), Shape({2, 1, 40}), Shape({40, 30, 50})}) {
      const Tensor x = Values(dtype, shape, 1, -9, 9);
      for (const auto& axis : axes) {
        for (bool keep : {false, true}) {
          Check({op,
                 {{"axes", axis}, {"keep_dims", keep}},
                 {x},
                 {Reduced(x, axis, keep, fold)},
                 1e-4});
        }
      }
      Check({op, {}, {x}, {Reduced(x, {0, 1, 2}, false, fold)}, 1e-4});
    }
  }
}

TEST(ReduceTest, OverEveryChoiceOfAxes) {
  const std::vector<D> numbers = {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64};
  CheckReduce("Sum", {0, [](double a, double b) { return a + b; }}, numbers);
  CheckReduce("Max", {-1e30, [](double a, double b) { return std::max(a, b); }}, numbers);
  CheckReduce("Min", {1e30, [](double a, double b) { return std::min(a, b); }}, numbers);
  CheckReduce("Mean", {0, [](double a, double b) { return a + b; }, true},
              {D::kFloat32, D::kFloat64});
}

TEST(ReduceTest, OfNothing) {
  const Tensor nothing(D::kFloat32, Shape({0, 3}));
  const Attributes first{{"axes", std::vector<int64_t>{0}}};
  const float infinity = INFINITY, nan = NAN;
  Check({"Sum", first, {nothing}, {Tensor::Of<float>({3}, {0, 0, 0})}});
  Check({"Mean", first, {nothing}, {Tensor::Of<float>({3}, {nan, nan, nan})}});
  Check({"Max", first, {nothing}, {Tensor::Of<float>({3}, {-infinity, -infinity, -infinity})}});
}

TEST(ReduceTest, ALongSumKeepsItsPrecision) {
  Tensor ones(D::kFloat32, Shape({3000000}));
  for (float& value : ones.data<float>()) value = 0.1f;
  Check({"Sum", {}, {ones}, {Tensor::Scalar(static_cast<float>(3000000 * double{0.1f}))}, 1e-6});
}

TEST(ReduceTest, NegativeAxesCountFromTheEnd) {
  const Attributes last{{"axes", std::vector<int64_t>{-1}}};
  Check({"Sum", last, {Tensor::Of<float>({2, 2}, {1, 2, 3, 4})}, {Tensor::Of<float>({2}, {3, 7})}});
}

TEST(ReduceTest, RefusesAxesThatAreNotThere) {
  const Operand x = Operand::Dense(D::kFloat32, Shape({2, 3}));
  const Operand y = Operand::Dense(D::kFloat32, Shape({3}));
  EXPECT_FALSE(PrepareError("Sum", {{"axes", std::vector<int64_t>{2}}}, {x}, {y}).ok());
  EXPECT_FALSE(PrepareError("Sum", {{"axes", std::vector<int64_t>{1}}}, {x}, {y}).ok());
  EXPECT_TRUE(PrepareError("Sum", {{"axes", std::vector<int64_t>{0}}}, {x}, {y}).ok());
}

TEST(ArgMaxTest, GivesTheFirstOfEquals) {
  const auto x = Tensor::Of<float>({2, 4}, {1, 7, 7, 0, -3, -5, -3, -9});
  Check({"ArgMax", {}, {x}, {Tensor::Of<int64_t>({2}, {1, 0})}});
  Check({"ArgMax", {{"axis", int64_t{0}}}, {x}, {Tensor::Of<int64_t>({4}, {0, 0, 0, 0})}});
  const auto cube = Tensor::Of<double>({2, 2, 2}, {1, 2, 3, 0, 5, 6, 7, 8});
  Check({"ArgMax", {{"axis", int64_t{1}}}, {cube}, {Tensor::Of<int64_t>({2, 2}, {1, 0, 1, 1})}});
}

TEST(ArgMaxTest, RefusesMoreDimensionsThanLoopsHave) {
  const std::vector<int64_t> dims(9, 2), rest(8, 2);
  const Operand x = Operand::Dense(D::kFloat32, Shape(dims));
  const Operand y = Operand::Dense(D::kInt64, Shape(rest));
  for (const int64_t axis : {0, 8}) {
    EXPECT_EQ(PrepareError("ArgMax", {{"axis", axis}}, {x}, {y}).code(),
              absl::StatusCode::kUnimplemented)
        << axis;
  }
}

}  // namespace
}  // namespace tfjob::kernels::cpu
