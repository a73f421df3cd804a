#include "runtime/tensor/attributes.h"

#include <gtest/gtest.h>

namespace tfjob {
namespace {

TEST(Attributes, PrintInOrderOfNames) {
  Attributes attributes{{"rate", 0.5},
                        {"axes", std::vector<int64_t>{0, 1}},
                        {"dtype", DType::kInt64},
                        {"value", Tensor::Of<float>({2}, {1, 0.25f})},
                        {"variable", std::string("dense/kernel")}};
  EXPECT_EQ(
      attributes.ToString(),
      "axes=[0,1], dtype=int64, rate=0.5, value=float32[2]{1,0.25}, variable=\"dense/kernel\"");
}

TEST(Attributes, AreEqualByTheBytesOfTensors) {
  Attributes a{{"value", Tensor::Of<float>({2}, {1, 2})}};
  EXPECT_EQ(a, (Attributes{{"value", Tensor::Of<float>({2}, {1, 2})}}));
  EXPECT_FALSE(a == (Attributes{{"value", Tensor::Of<float>({2}, {1, 3})}}));
  EXPECT_FALSE(a == (Attributes{{"value", int64_t{1}}}));
  EXPECT_FALSE(a == Attributes());
}

TEST(Attributes, OfAnotherTypeAreAbsent) {
  Attributes attributes{{"axis", int64_t{1}}};
  EXPECT_EQ(attributes.Get<int64_t>("axis", 7), 1);
  EXPECT_EQ(attributes.Get<double>("axis", 7), 7);
  EXPECT_EQ(attributes.Find<bool>("none"), nullptr);
}

}  // namespace
}  // namespace tfjob
