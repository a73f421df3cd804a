#include "runtime/variables/memory_use.h"

#include <gtest/gtest.h>

namespace tfjob::variables {
namespace {

std::vector<MemoryUse> Tensors(int count) {
  std::vector<MemoryUse> tensors;
  for (int64_t i = 1; i <= count; ++i)
    tensors.push_back({StrCat("t", i), DType::kFloat32, Shape({i}), static_cast<size_t>(4 * i)});
  return tensors;
}

TEST(LargestTensors, ListsFiveInDescendingOrder) {
  EXPECT_EQ(LargestTensors({}), "");
  EXPECT_EQ(LargestTensors(Tensors(2)), "t2 float32[2] (8 bytes), t1 float32[1] (4 bytes)");
  EXPECT_EQ(LargestTensors(Tensors(7)),
            "t7 float32[7] (28 bytes), t6 float32[6] (24 bytes), t5 float32[5] (20 bytes), t4 "
            "float32[4] (16 bytes), t3 float32[3] (12 bytes)");
}

TEST(CheckMemory, AcceptsWhatFits) {
  EXPECT_EQ(CheckMemory(12, Tensors(2), 12), OkStatus());
}

TEST(CheckMemory, NamesTheTotalTheLimitAndTheLargestTensors) {
  EXPECT_EQ(
      CheckMemory(13, Tensors(2), 12),
      ResourceExhausted("the model needs 13 bytes of memory, but this process may use 12; use "
                        "a smaller model or batch, or more memory. The largest tensors: t2 "
                        "float32[2] (8 bytes), t1 float32[1] (4 bytes)"));
}

}  // namespace
}  // namespace tfjob::variables
