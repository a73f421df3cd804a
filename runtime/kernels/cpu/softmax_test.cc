#include <gtest/gtest.h>

#include <cmath>

#include "runtime/kernels/cpu/check.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

struct Rows {
  Tensor probabilities, log_probabilities;
};

Rows Reference(const Tensor& x) {
  const int64_t cols = x.shape().dim(-1);
  Rows result{x.Clone(), x.Clone()};
  for (int64_t row = 0; row < x.num_elements() / cols; ++row) {
    double maximum = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) maximum = std::max(maximum, ValueAt(x, row * cols + i));
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(ValueAt(x, row * cols + i) - maximum);
    for (int64_t i = row * cols; i < (row + 1) * cols; ++i) {
      const double log_probability = ValueAt(x, i) - maximum - std::log(sum);
      SetValue(result.probabilities, i, std::exp(log_probability));
      SetValue(result.log_probabilities, i, log_probability);
    }
  }
  return result;
}

const std::vector<Shape> kShapes = {Shape({1, 1}), Shape({5, 10}), Shape({3, 37}),
                                    Shape({700, 64})};

TEST(SoftmaxTest, IsStableForLargeLogits) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : kShapes) {
      for (double size : {1.0, 1000.0}) {
        const Tensor x = Values(dtype, shape, 1, -size, size);
        Check({"Softmax", {}, {x}, {Reference(x).probabilities}});
        Check({"LogSoftmax", {}, {x}, {Reference(x).log_probabilities}});
      }
    }
  }
}

TEST(SoftmaxTest, GradientSumsOverEachRow) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : kShapes) {
      const Tensor y = Values(dtype, shape, 1, 0, 1), dy = Values(dtype, shape, 2, -1, 1);
      const int64_t cols = shape.dim(-1);
      Tensor dx = y.Clone();
      for (int64_t row = 0; row < y.num_elements() / cols; ++row) {
        double dot = 0;
        for (int64_t i = row * cols; i < (row + 1) * cols; ++i)
          dot += ValueAt(y, i) * ValueAt(dy, i);
        for (int64_t i = row * cols; i < (row + 1) * cols; ++i)
          SetValue(dx, i, (ValueAt(dy, i) - dot) * ValueAt(y, i));
      }
      Check({"SoftmaxGrad", {}, {y, dy}, {dx}, 1e-5});
    }
  }
}

template <typename Label>
void CheckSparse(D dtype, const Shape& shape) {
  const Tensor x = Values(dtype, shape, 1, -30, 30);
  const Rows rows = Reference(x);
  const int64_t count = shape.dim(0), classes = shape.dim(1);
  Tensor labels(DTypeOf<Label>::value, Shape({count})), loss(dtype, Shape({count}));
  Tensor backprop = rows.probabilities.Clone();
  for (int64_t row = 0; row < count; ++row) {
    const int64_t at = row * classes + row % classes;
    SetValue(labels, row, static_cast<double>(row % classes));
    SetValue(loss, row, -ValueAt(rows.log_probabilities, at));
    SetValue(backprop, at, ValueAt(backprop, at) - 1);
  }
  Check({"SparseSoftmaxCrossEntropyWithLogits", {}, {x, labels}, {loss, backprop}, 2e-6});
}

TEST(CrossEntropyTest, SparseLabels) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : kShapes) {
      CheckSparse<int32_t>(dtype, shape);
      CheckSparse<int64_t>(dtype, shape);
      CheckSparse<uint8_t>(dtype, shape);
    }
  }
}

TEST(CrossEntropyTest, LabelsOutOfRangeGiveNaNInTheirRowAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float half = 0.5f, loss = std::log(2.0f);
  Check({"SparseSoftmaxCrossEntropyWithLogits",
         {},
         {Tensor(D::kFloat32, Shape({4, 2})), Tensor::Of<int64_t>({4}, {1, 2, -1, 0})},
         {Tensor::Of<float>({4}, {loss, nan, nan, loss}),
          Tensor::Of<float>({4, 2}, {half, -half, nan, nan, nan, nan, -half, half})}});
}

TEST(CrossEntropyTest, DenseLabels) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : kShapes) {
      const Tensor x = Values(dtype, shape, 1, -30, 30), labels = Values(dtype, shape, 2, 0, 1);
      const Rows rows = Reference(x);
      const int64_t classes = shape.dim(1);
      Tensor loss(dtype, Shape({shape.dim(0)})), backprop = x.Clone();
      for (int64_t row = 0; row < shape.dim(0); ++row) {
        double sum = 0, weight = 0;
        for (int64_t i = row * classes; i < (row + 1) * classes; ++i) {
          sum -= ValueAt(labels, i) * ValueAt(rows.log_probabilities, i);
          weight += ValueAt(labels, i);
        }
        SetValue(loss, row, sum);
        for (int64_t i = row * classes; i < (row + 1) * classes; ++i) {
          SetValue(backprop, i, ValueAt(rows.probabilities, i) * weight - ValueAt(labels, i));
        }
      }
      Check({"SoftmaxCrossEntropyWithLogits", {}, {x, labels}, {loss, backprop}, 1e-5});
    }
  }
}

TEST(CrossEntropyTest, RefusesLabelsOfAnotherLength) {
  const Operand logits = Operand::Dense(D::kFloat32, Shape({4, 2}));
  const Operand labels = Operand::Dense(D::kInt64, Shape({3}));
  const Operand loss = Operand::Dense(D::kFloat32, Shape({4}));
  EXPECT_EQ(
      PrepareError("SparseSoftmaxCrossEntropyWithLogits", {}, {logits, labels}, {loss, logits})
          .code(),
      StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::kernels::cpu
