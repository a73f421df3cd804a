#include "runtime/tensor/tensor.h"

#include <gtest/gtest.h>

namespace tfjob {
namespace {

TEST(Tensor, SharesOnCopyAndNotOnClone) {
  Tensor a = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  Tensor shared = a.Reshaped({4});
  Tensor cloned = a.Clone();
  shared.data<float>()[0] = 9;
  EXPECT_EQ(a.data<float>()[0], 9);
  EXPECT_EQ(cloned.data<float>()[0], 1);
  EXPECT_EQ(shared.shape().ToString(), "[4]");
}

TEST(Tensor, ScalarHasOneElementAndAlignedMemory) {
  Tensor step = Tensor::Scalar<int64_t>(7);
  EXPECT_EQ(step.num_elements(), 1);
  EXPECT_EQ(step.shape().ToString(), "[]");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(step.bytes().data()) % 64, 0u);
}

TEST(Tensor, HasZerosUntilItIsFilled) {
  const Tensor tensor(DType::kInt32, {2, 3});
  EXPECT_EQ(tensor.num_bytes(), 24u);
  for (int32_t value : tensor.data<int32_t>()) EXPECT_EQ(value, 0);
  EXPECT_EQ(Tensor().shape(), Shape({0}));
  EXPECT_EQ(Tensor().num_bytes(), 0u);
  EXPECT_NE(Tensor().bytes().data(), nullptr);
}

TEST(Tensor, RefusesElementsThatDoNotFit) {
  EXPECT_DEATH(Tensor::Of<float>({3}, {1, 2}), "as many values as elements");
  EXPECT_DEATH(Tensor(DType::kInt64, {2}).data<double>(), "the element type of the tensor");
  EXPECT_DEATH(Tensor().Reshaped({2}), "reshape keeps the number of elements");
}

TEST(Buffer, IsAlignedAndZeroUnlessItNeedNotBe) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{1000}, size_t{1} << 20}) {
    Buffer zero(bytes), undefined(bytes, Buffer::Contents::kUndefined);
    for (Buffer* buffer : {&zero, &undefined}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
      EXPECT_EQ(buffer->size(), bytes);
    }
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(zero.data()[i], std::byte{0}) << i;
    std::fill_n(zero.data(), bytes, std::byte{7});
    std::fill_n(undefined.data(), bytes, std::byte{7});
  }
  EXPECT_DEATH(Buffer(~size_t{0} - 100), "the size of a buffer");
}

TEST(Shape, CountsElementsOnlyIfTheirNumberFits) {
  constexpr int64_t kHalf = int64_t{1} << 62;
  EXPECT_EQ(Shape({3, 4}).CheckedElements(), 12);
  EXPECT_EQ(Shape().CheckedElements(), 1);
  EXPECT_EQ(Shape({kHalf, 1}).CheckedElements(), kHalf);
  EXPECT_EQ(Shape({kHalf, 2}).CheckedElements(), std::nullopt);
  EXPECT_EQ(Shape({kHalf, 4}).CheckedElements(), std::nullopt) << "0 modulo 2^64";
  EXPECT_EQ(Shape({(int64_t{1} << 61) + 1, 8}).CheckedElements(), std::nullopt) << "8 modulo 2^64";
  EXPECT_EQ(Shape({kHalf, 4, 0}).CheckedElements(), 0);
  EXPECT_EQ(Shape({-1, 4}).CheckedElements(), std::nullopt);
  EXPECT_EQ(Shape({-1, -4}).CheckedElements(), std::nullopt);
  EXPECT_EQ(Shape({-1, 0}).CheckedElements(), std::nullopt);
}

TEST(Shape, CountsElementsAndAxesFromTheEnd) {
  const Shape shape({2, 3, 5});
  EXPECT_EQ(shape.num_elements(), 30);
  EXPECT_EQ(shape.dim(-1), 5);
  EXPECT_EQ(shape.dim(-3), 2);
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(Shape({4, 0, 5}).num_elements(), 0);
  EXPECT_NE(Shape({1}), Shape());
}

// Expect TensorFlow's dtype numbers (types.proto), which are stored in checkpoints.
TEST(DType, HasTensorFlowsNumbersAndNumPysNames) {
  struct Case {
    int number;
    const char* name;
    size_t size;
  };
  const Case cases[] = {{1, "float32", 4},   {2, "float64", 8}, {3, "int32", 4},
                        {4, "uint8", 1},     {9, "int64", 8},   {10, "bool", 1},
                        {14, "bfloat16", 2}, {19, "float16", 2}};
  for (const Case& test : cases) {
    const std::optional<DType> dtype = DTypeFromTensorFlow(test.number);
    ASSERT_TRUE(dtype.has_value()) << test.number;
    EXPECT_EQ(Name(*dtype), test.name);
    EXPECT_EQ(SizeOf(*dtype), test.size) << test.name;
  }
  for (int number : {0, 5, 7, 11, 101}) EXPECT_EQ(DTypeFromTensorFlow(number), std::nullopt);
}

TEST(DType, NamesReadBack) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt8, DType::kInt64,
                      DType::kBool, DType::kBFloat16, DType::kFloat16}) {
    EXPECT_EQ(ParseDType(Name(dtype)), dtype);
    EXPECT_EQ(DTypeFromTensorFlow(static_cast<int>(dtype)), dtype);
  }
  EXPECT_EQ(ParseDType("float8"), std::nullopt);
}

}  // namespace
}  // namespace tfjob
