#include "runtime/variables/value_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "runtime/variables/variable_store.h"

namespace tfjob::variables {
namespace {

int64_t PaddedByFive(DType, const Shape& shape) {
  return shape.dim(-1) + 5;
}

// Returns whether all elements equal `value`. Compares the first element with `value`, and each
// element with the next one.
bool HoldsOnly(const Tensor& tensor, float value) {
  const std::span<const float> held = tensor.data<float>();
  return held[0] == value &&
         std::memcmp(held.data(), held.data() + 1, held.size_bytes() - sizeof(float)) == 0;
}

// A variable of several pieces, whose elements are all equal.
class ValueCopyTest : public testing::TestWithParam<RowStrideFunction> {
 protected:
  void Fill(float value) {
    std::ranges::fill(value_.data<float>(), value);
    ASSERT_EQ(variable_->FromTensor(value_), OkStatus());
  }

  const Shape shape_{1600, 701};
  VariableStore store_{GetParam()};
  Variable* variable_ = *store_.Create("w", DType::kFloat32, shape_, Kind::kTrainable);
  Tensor value_{DType::kFloat32, shape_};
  Tensor to_{DType::kFloat32, shape_};
};

INSTANTIATE_TEST_SUITE_P(Layouts, ValueCopyTest, testing::Values(&DenseRowStride, &PaddedByFive));

TEST_P(ValueCopyTest, CopiesNothingBeforeItIsFinished) {
  Fill(1);
  const std::shared_ptr<ValueCopy> copy = variable_->BeginCopy(to_);
  EXPECT_FALSE(copy->finished());
  EXPECT_TRUE(HoldsOnly(to_, 0));
  copy->Finish();
  EXPECT_TRUE(copy->finished());
  EXPECT_TRUE(HoldsOnly(to_, 1));
}

TEST_P(ValueCopyTest, HoldsTheValueFromBeforeTheNextWrite) {
  Fill(1);
  const std::shared_ptr<ValueCopy> copy = variable_->BeginCopy(to_);
  Fill(2);
  EXPECT_TRUE(copy->finished());
  Fill(3);
  copy->Finish();
  EXPECT_TRUE(HoldsOnly(to_, 1));
}

TEST_P(ValueCopyTest, AWriteOfAPartComesAfterTheCopy) {
  Fill(1);
  const std::shared_ptr<ValueCopy> copy = variable_->BeginCopy(to_);
  const float two = 2;
  ASSERT_EQ(variable_->CopyIn(4, std::as_bytes(std::span(&two, 1))), OkStatus());
  EXPECT_TRUE(HoldsOnly(to_, 1));
}

TEST_P(ValueCopyTest, ARefusedWriteDoesNotHurry) {
  const std::shared_ptr<ValueCopy> copy = variable_->BeginCopy(to_);
  EXPECT_FALSE(variable_->FromTensor(Tensor::Scalar<float>(1)).ok());
  EXPECT_FALSE(copy->finished());
}

TEST_P(ValueCopyTest, IsWholeWhenItsVariableIsGone) {
  Fill(1);
  const std::shared_ptr<ValueCopy> copy = variable_->BeginCopy(to_);
  store_ = VariableStore();
  copy->Finish();
  EXPECT_TRUE(HoldsOnly(to_, 1));
}

TEST_P(ValueCopyTest, TheNextOneFinishesTheOneBefore) {
  Fill(1);
  const std::shared_ptr<ValueCopy> first = variable_->BeginCopy(to_);
  const Tensor another(DType::kFloat32, shape_);
  const std::shared_ptr<ValueCopy> second = variable_->BeginCopy(another);
  EXPECT_TRUE(first->finished());
  Fill(2);
  EXPECT_TRUE(HoldsOnly(to_, 1));
  EXPECT_TRUE(HoldsOnly(another, 1));
}

// Other threads finish a copy while the variable is written repeatedly.
TEST_P(ValueCopyTest, NoWriteShowsInACopyThatOthersFinish) {
  std::mt19937 random(7);
  for (int round = 0; round < 8; ++round) {
    const auto value = static_cast<float>(round);
    Fill(value);
    const std::shared_ptr<ValueCopy> copy = variable_->BeginCopy(to_);
    std::vector<std::thread> others;
    for (int i = 0; i < 2; ++i) {
      others.emplace_back([copy, to = to_, value, delay = random() % 500] {
        std::this_thread::sleep_for(std::chrono::microseconds(delay));
        copy->Finish();
        EXPECT_TRUE(HoldsOnly(to, value));
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    Fill(-1);
    for (std::thread& other : others) other.join();
  }
}

}  // namespace
}  // namespace tfjob::variables
