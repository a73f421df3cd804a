#include <gtest/gtest.h>

#include <cmath>

#include "runtime/kernels/cpu/check.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;
constexpr D kAll[] = {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64, D::kUInt8, D::kBool};

TEST(MoveTest, ReshapeKeepsTheDenseOrder) {
  for (D dtype : kAll) {
    const Tensor x = Values(dtype, Shape({6, 10}), 1, 0, 9);
    for (const Shape& shape : {Shape({60}), Shape({10, 6}), Shape({3, 4, 5}), Shape({6, 10})}) {
      Check({"Reshape", {}, {x}, {x.Reshaped(shape)}});
    }
  }
}

TEST(MoveTest, TransposesAnyRank) {
  for (D dtype : kAll) {
    for (const Shape& shape : {Shape({5, 7}), Shape({130, 301})}) {
      const Tensor x = Values(dtype, shape, 1, 0, 9);
      Tensor y(dtype, Shape({shape.dim(1), shape.dim(0)}));
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        SetValue(y, i % shape.dim(1) * shape.dim(0) + i / shape.dim(1), ValueAt(x, i));
      }
      Check({"Transpose", {}, {x}, {y}});
    }
  }
  const auto x = Tensor::Of<int32_t>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  Check({"Transpose",
         {{"perm", std::vector<int64_t>{1, 2, 0}}},
         {x},
         {Tensor::Of<int32_t>({3, 2, 2}, {0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11})}});
  Check({"Transpose", {{"perm", std::vector<int64_t>{0, 1, 2}}}, {x}, {x}});
}

TEST(MoveTest, RefusesAPermThatIsNone) {
  const Operand x = Operand::Dense(D::kFloat32, Shape({2, 2}));
  for (const auto& perm : {std::vector<int64_t>{0, 0}, {0, 2}, {0}, {-1, 0}}) {
    EXPECT_FALSE(PrepareError("Transpose", {{"perm", perm}}, {x}, {x}).ok());
  }
}

TEST(MoveTest, FillsAndCopies) {
  for (D dtype : kAll) {
    const Tensor x = Values(dtype, Shape({5, 7}), 1, 0, 9);
    Check({"Identity", {}, {x}, {x}});
    Check({"Const", {{"value", x}}, {}, {x}});
    Check({"Assign", {}, {Values(dtype, Shape({5, 7}), 2, 0, 9), x}, {x}});
    const Tensor ones = Elementwise(dtype, {x}, [](const auto&) { return 1; });
    Check({"Fill", {{"value", 1.0}}, {}, {ones}});
    Check({"Fill", {{"value", int64_t{1}}}, {}, {ones}});
  }
}

TEST(MoveTest, AssignAddChangesTheVariable) {
  for (D dtype : {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64}) {
    const Tensor x = Values(dtype, Shape({5, 7}), 1), y = Values(dtype, Shape({5, 7}), 2);
    const Tensor sum = Elementwise(dtype, {x, y}, [](const auto& v) { return v[0] + v[1]; });
    Check({"AssignAdd", {}, {x, y}, {sum}});
  }
  Check({"AssignAdd",
         {},
         {Tensor::Scalar(int64_t{41}), Tensor::Scalar(int64_t{1})},
         {Tensor::Scalar(int64_t{42})}});
}

// The sum of a float64 variable and float32 values has no float32 rounding error.
TEST(MoveTest, AssignAddAddsFloatsToDoubles) {
  const Tensor sum = Values(D::kFloat64, Shape({5, 7}), 1), y = Values(D::kFloat32, {5, 7}, 2);
  const Tensor expected =
      Elementwise(D::kFloat64, {sum, y}, [](const auto& v) { return v[0] + v[1]; });
  Check({"AssignAdd", {}, {sum, y}, {expected}});
  Check({"AssignAdd",
         {},
         {Tensor::Scalar(16777216.0), Tensor::Scalar(1.0F)},
         {Tensor::Scalar(16777217.0)}});
}

TEST(CastTest, BetweenAllTypes) {
  for (D from : kAll) {
    for (D to : kAll) {
      const Tensor x = Values(from, Shape({5, 31}), 1, 0, 9);
      Check({"Cast", {}, {x}, {Elementwise(to, {x}, [&](const auto& v) {
               return to == D::kBool || to == D::kFloat32 || to == D::kFloat64 ? v[0]
                                                                               : std::trunc(v[0]);
             })}});
    }
  }
}

TEST(CastTest, FloatsOutsideAnIntegersRangeSaturate) {
  const auto x = Tensor::Of<float>({5}, {1e20f, -1e20f, NAN, -1.9f, 300});
  Check({"Cast",
         {},
         {x},
         {Tensor::Of<int32_t>({5}, {std::numeric_limits<int32_t>::max(),
                                    std::numeric_limits<int32_t>::min(), 0, -1, 300})}});
  Check({"Cast", {}, {x}, {Tensor::Of<uint8_t>({5}, {255, 0, 0, 0, 255})}});
}

TEST(FusedElementwiseTest, RunsItsProgram) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : {Shape({7, 19}), Shape({3, 600}), Shape({0, 4}), Shape({200, 301})}) {
      const Tensor x = Values(dtype, shape, 1), y = Values(dtype, shape, 2);
      Check({"FusedElementwise",
             {{"program", std::string("Mul i0 -0.5; Add t0 i1; Tanh t1; Mul t2 t2")}},
             {x, y},
             {Elementwise(dtype, {x, y}, [](const auto& v) {
               const double t = std::tanh(v[0] * -0.5 + v[1]);
               return t * t;
             })}});
    }
  }
}

TEST(FusedElementwiseTest, RepeatsRowsAndScalars) {
  const Tensor x = Values(D::kFloat32, Shape({5, 300}), 1);
  const Tensor row = Values(D::kFloat32, Shape({300}), 2);
  Tensor expected = x.Clone();
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const double value = (ValueAt(x, i) + ValueAt(row, i % 300)) * 3;
    SetValue(expected, i, std::min(std::max(value, -1.0), 2.0));
  }
  Check({"FusedElementwise",
         {{"program", std::string("Add i0 i1; Mul t0 i2; ClipByValue t1 -1 i3")}},
         {x, row, Tensor::Scalar(3.0f), Tensor::Of<float>({1}, {2})},
         {expected}});
}

TEST(FusedElementwiseTest, ReadsInfinity) {
  const auto x = Tensor::Of<float>({2}, {-5, 7});
  Check({"FusedElementwise",
         {{"program", std::string("ClipByValue i0 0 inf; Minimum t0 1e+3; Maximum t1 -inf")}},
         {x},
         {Tensor::Of<float>({2}, {0, 7})}});
}

TEST(FusedElementwiseTest, RefusesProgramsThatMakeNoSense) {
  const Operand x = Operand::Dense(D::kFloat32, Shape({2, 3}));
  for (const char* program : {"", "Add i0", "Add i0 i1", "Relu t0", "Relu i0 i0", "Foo i0",
                              "Relu i0; Relu t1", "Relu x", "Relu i-1"}) {
    EXPECT_FALSE(
        PrepareError("FusedElementwise", {{"program", std::string(program)}}, {x}, {x}).ok())
        << program;
  }
}

}  // namespace
}  // namespace tfjob::kernels::cpu
