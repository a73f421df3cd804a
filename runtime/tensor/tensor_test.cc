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

TEST(DType, NamesReadBack) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt8, DType::kInt64,
                      DType::kBool}) {
    EXPECT_EQ(ParseDType(Name(dtype)), dtype);
    EXPECT_EQ(DTypeFromTensorFlow(static_cast<int>(dtype)), dtype);
  }
  EXPECT_EQ(ParseDType("float8"), std::nullopt);
}

}  // namespace
}  // namespace tfjob
