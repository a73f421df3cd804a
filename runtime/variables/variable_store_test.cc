#include "runtime/variables/variable_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace tfjob::variables {
namespace {

int64_t PaddedByThree(DType, const Shape& shape) {
  return (shape.rank() == 0 ? 1 : shape.dim(-1)) + 3;
}

TEST(VariableStore, KeepsTheOrderOfCreation) {
  VariableStore store;
  for (const char* name : {"z", "a", "m"}) {
    ASSERT_TRUE(store.Create(name, DType::kFloat32, {2}, Kind::kTrainable).ok());
  }
  ASSERT_TRUE(store.Create("global_step", DType::kInt64, {}, Kind::kCounter).ok());
  ASSERT_EQ(store.variables().size(), 4u);
  EXPECT_EQ(store.variables()[0]->name(), "z");
  EXPECT_EQ(store.variables()[2]->name(), "m");
  EXPECT_EQ(store.num_bytes(), 3 * 8u + 8u);
}

TEST(VariableStore, RefusesWhatItCannotHold) {
  VariableStore store;
  ASSERT_TRUE(store.Create("w", DType::kFloat32, {2}, Kind::kTrainable).ok());
  EXPECT_EQ(store.Create("w", DType::kFloat32, {3}, Kind::kTrainable).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(store.Create("", DType::kFloat32, {3}, Kind::kTrainable).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store.Create("v", DType::kFloat32, {-1}, Kind::kTrainable).status().code(),
            StatusCode::kInvalidArgument);
  const Shape huge{int64_t{1} << 62, 8};
  EXPECT_EQ(store.Create("v", DType::kFloat32, huge, Kind::kTrainable).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store.Find("v"), nullptr);
  EXPECT_NE(Message(store.Get("v").status()).find("there is no variable v; known: w"),
            std::string::npos);
}

TEST(Variable, ShowsDenseValuesWhateverThePaddingIs) {
  VariableStore store(PaddedByThree);
  Variable* w = *store.Create("w", DType::kFloat32, {2, 2}, Kind::kTrainable);
  EXPECT_FALSE(w->dense());
  EXPECT_EQ(w->num_bytes(), 16u);
  ASSERT_TRUE(w->FromTensor(Tensor::Of<float>({2, 2}, {1, 2, 3, 4})).ok());
  EXPECT_EQ(static_cast<const float*>(w->data())[5], 3);
  const Tensor value = w->ToTensor();
  EXPECT_EQ(std::vector<float>(value.data<float>().begin(), value.data<float>().end()),
            (std::vector<float>{1, 2, 3, 4}));
}

TEST(Variable, CopiesPartsThatBeginAndEndWithinRows) {
  VariableStore store(PaddedByThree);
  Variable* w = *store.Create("w", DType::kUInt8, {3, 3}, Kind::kTrainable);
  const std::array<std::byte, 5> part = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                         std::byte{5}};
  ASSERT_TRUE(w->CopyIn(2, part).ok());
  std::array<std::byte, 9> all;
  ASSERT_TRUE(w->CopyOut(all).ok());
  EXPECT_EQ(all[1], std::byte{0});
  EXPECT_EQ(all[2], std::byte{1});
  EXPECT_EQ(all[6], std::byte{5});
  EXPECT_EQ(all[7], std::byte{0});
  std::array<std::byte, 4> back;
  ASSERT_TRUE(w->CopyOut(3, back).ok());
  EXPECT_EQ(back[0], std::byte{2});
}

TEST(Variable, RefusesOtherSizesAndChangesNothing) {
  VariableStore store;
  Variable* w = *store.Create("w", DType::kFloat32, {2}, Kind::kTrainable);
  std::array<std::byte, 12> wrong{};
  EXPECT_EQ(Message(w->CopyIn(wrong)), "variable w float32[2] has 8 bytes, got 12");
  EXPECT_FALSE(w->CopyOut(wrong).ok());
  EXPECT_FALSE(w->CopyIn(4, std::span<const std::byte>(wrong).first(8)).ok());
  EXPECT_FALSE(w->FromTensor(Tensor::Of<double>({2}, {1, 2})).ok());
  EXPECT_EQ(w->version(), 0);
}

TEST(Variable, ItsMemoryTakesAValueWithoutACopy) {
  VariableStore store;
  Variable* w = *store.Create("w", DType::kFloat32, {2, 2}, Kind::kTrainable);
  Tensor memory = w->Memory();
  EXPECT_EQ(memory.bytes().data(), w->data());
  memory.data<float>()[3] = 7;
  ASSERT_EQ(w->FromTensor(memory), OkStatus());
  EXPECT_EQ(w->version(), 1);
  EXPECT_EQ(w->ToTensor().data<float>()[3], 7);
}

TEST(Variable, PaddedMemoryTakesAValueThroughATensor) {
  VariableStore store(PaddedByThree);
  Variable* w = *store.Create("w", DType::kFloat32, {2, 2}, Kind::kTrainable);
  Tensor memory = w->Memory();
  EXPECT_EQ(memory.shape(), w->shape());
  std::ranges::fill(memory.data<float>(), 7.0f);
  ASSERT_EQ(w->FromTensor(memory), OkStatus());
  EXPECT_EQ(w->ToTensor().data<float>()[3], 7);
}

TEST(Variable, ACopyThatIsInProgressKeepsTheOldValueOfItsMemory) {
  VariableStore store;
  Variable* w = *store.Create("w", DType::kFloat32, {2}, Kind::kTrainable);
  ASSERT_EQ(w->FromTensor(Tensor::Of<float>({2}, {1, 2})), OkStatus());
  const Tensor copy(DType::kFloat32, {2});
  w->BeginCopy(copy);
  w->Memory().data<float>()[0] = 7;
  EXPECT_EQ(copy.data<float>()[0], 1);
}

TEST(Variable, CountsWrites) {
  VariableStore store;
  Variable* w = *store.Create("w", DType::kFloat32, {1}, Kind::kTrainable);
  ASSERT_TRUE(w->FromTensor(Tensor::Of<float>({1}, {1})).ok());
  w->CountWrite();
  EXPECT_EQ(w->version(), 2);
}

}  // namespace
}  // namespace tfjob::variables
