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

TEST(Attributes, PrintEveryType) {
  const std::pair<AttributeValue, const char*> cases[] = {
      {int64_t{-3}, "-3"},
      {1e-7, "1e-07"},
      {0.1, "0.1"},
      {false, "false"},
      {std::string(), "\"\""},
      {std::vector<int64_t>(), "[]"},
      {Shape({2, -1}), "[2,-1]"},
      {Tensor::Of<bool>({2}, {true, false}), "bool[2]{1,0}"},
      {Tensor::Of<uint8_t>({}, {200}), "uint8[]{200}"},
      {Tensor::Of<double>({1}, {0.1}), "float64[1]{0.1}"},
      {Tensor::Of<int64_t>({8}, {1, 2, 3, 4, 5, 6, 7, 8}), "int64[8]{1,2,3,4,5,6,7,8}"},
      {Tensor(DType::kInt32, {3, 3}), "int32[3,3]{0,0,0,0,0,0,0,0,…}"},
      {Tensor(), "float32[0]{}"},
  };
  for (const auto& [value, expected] : cases) {
    Attributes attributes{{"a", true}};
    attributes.Set("a", value);
    EXPECT_EQ(attributes.ToString(), std::string("a=") + expected);
  }
  EXPECT_EQ(Attributes().ToString(), "");
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
