#include <gtest/gtest.h>

#include "runtime/kernels/cpu/check.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;
using Ints = std::vector<int64_t>;

constexpr D kAll[] = {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64, D::kUInt8, D::kBool};

// Returns the dense index, in a tensor of shape `in`, of an element of a block. The block has the
// shape `shape` and starts at `begin`; `i` is the dense index of the element within the block.
int64_t Placed(const Shape& shape, int64_t i, const Shape& in, const Ints& begin) {
  int64_t at = 0, step = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    at += (i % shape.dim(d) + begin[static_cast<size_t>(d)]) * step;
    i /= shape.dim(d);
    step *= in.dim(d);
  }
  return at;
}

Tensor Cut(const Tensor& x, const Ints& begin, const Shape& size) {
  Tensor cut(x.dtype(), size);
  for (int64_t i = 0; i < size.num_elements(); ++i)
    SetValue(cut, i, ValueAt(x, Placed(size, i, x.shape(), begin)));
  return cut;
}

TEST(Slice, CutsAnyBlock) {
  for (const D dtype : kAll) {
    const Tensor x = Values(dtype, {4, 5, 6}, 1, 0, 100);
    for (const auto& [begin, size] : {std::pair<Ints, Ints>{{0, 0, 0}, {4, 5, 6}},
                                      {{1, 2, 3}, {2, 3, 3}},
                                      {{3, 0, 5}, {1, 5, 1}},
                                      {{0, 1, 0}, {4, 2, 6}},
                                      {{2, 2, 2}, {1, 1, 1}}}) {
      Check({"Slice", {{"begin", begin}, {"size", size}}, {x}, {Cut(x, begin, Shape(size))}});
    }
  }
}

TEST(Pad, SurroundsWithZeros) {
  for (const D dtype : kAll) {
    const Tensor x = Values(dtype, {3, 2, 4}, 1, 1, 100);
    for (const auto& [before, after] : {std::pair<Ints, Ints>{{0, 0, 0}, {0, 0, 0}},
                                        {{1, 0, 2}, {0, 3, 1}},
                                        {{0, 2, 0}, {2, 0, 0}}}) {
      Ints dims = x.shape().dims();
      for (size_t d = 0; d < dims.size(); ++d) dims[d] += before[d] + after[d];
      Tensor padded(dtype, Shape(dims));
      for (int64_t i = 0; i < padded.num_elements(); ++i) SetValue(padded, i, 0);
      for (int64_t i = 0; i < x.num_elements(); ++i)
        SetValue(padded, Placed(x.shape(), i, padded.shape(), before), ValueAt(x, i));
      Check({"Pad", {{"before", before}, {"after", after}}, {x}, {padded}});
    }
  }
}

TEST(Concat, JoinsAlongEachAxis) {
  for (const D dtype : kAll) {
    const Tensor whole = Values(dtype, {4, 5, 6}, 1, 0, 100);
    for (int64_t axis = 0; axis < 3; ++axis) {
      std::vector<Tensor> parts;
      Ints begin = {0, 0, 0};
      for (const int64_t size : {int64_t{1}, int64_t{2}, whole.shape().dim(int(axis)) - 3}) {
        Ints dims = whole.shape().dims();
        dims[static_cast<size_t>(axis)] = size;
        parts.push_back(Cut(whole, begin, Shape(dims)));
        begin[static_cast<size_t>(axis)] += size;
      }
      Check({"Concat", {{"axis", axis}}, parts, {whole}});
    }
  }
}

TEST(Slice, RefusesOperandsThatDoNotFit) {
  const auto code = [](const char* op, const Attributes& attributes, const Shape& in,
                       const Shape& out) {
    return PrepareError(op, attributes, {Operand::Dense(D::kFloat32, in)},
                        {Operand::Dense(D::kFloat32, out)})
        .code();
  };
  EXPECT_EQ(code("Slice", {{"begin", Ints{1}}}, {3}, {2}), StatusCode::kOk);
  EXPECT_EQ(code("Slice", {{"begin", Ints{2}}}, {3}, {2}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("Slice", {{"begin", Ints{-1}}}, {3}, {2}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("Slice", {{"begin", Ints{1, 1}}}, {3}, {2}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("Slice", {}, {3}, {2}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("Pad", {{"before", Ints{2}}}, {3}, {4}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("Concat", {{"axis", int64_t{0}}}, {3}, {4}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("Concat", {{"axis", int64_t{1}}}, {3}, {3}), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::kernels::cpu
