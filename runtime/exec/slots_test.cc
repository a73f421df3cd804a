#include "runtime/exec/slots.h"

#include <gtest/gtest.h>

namespace tfjob::exec {
namespace {

using optimizer::Kind;
using optimizer::Optimizer;
using variables::VariableStore;

TEST(FindOrCreateSlots, CreatesThemWithTheirInitialValuesOnce) {
  VariableStore store;
  const auto* w = *store.Create("w", DType::kFloat32, {2, 3}, variables::Kind::kTrainable);
  const Optimizer adagrad = Optimizer::Default(Kind::kAdagrad);
  auto slots = FindOrCreateSlots(adagrad, *w, store);
  ASSERT_TRUE(slots.ok()) << slots.status();
  ASSERT_EQ(slots->size(), 1u);
  EXPECT_EQ((*slots)[0]->name(), "w/Adagrad");
  EXPECT_EQ((*slots)[0]->kind(), variables::Kind::kSlot);
  EXPECT_FLOAT_EQ((*slots)[0]->ToTensor().data<float>()[5], 0.1f);
  EXPECT_EQ(*FindOrCreateSlots(adagrad, *w, store), *slots);
  EXPECT_EQ(store.variables().size(), 2u);
}

TEST(FindOrCreateSlots, RefusesWhatHasTheNameButIsNoSlot) {
  VariableStore store;
  const auto* w = *store.Create("w", DType::kFloat32, {2}, variables::Kind::kTrainable);
  ASSERT_TRUE(store.Create("w/Adagrad", DType::kFloat32, {2}, variables::Kind::kTrainable).ok());
  const Status status = FindOrCreateSlots(Optimizer::Default(Kind::kAdagrad), *w, store).status();
  EXPECT_EQ(Message(status),
            "variable w/Adagrad is trainable float32[2], expected the slot accumulator float32[2]");
}

TEST(FindOrCreateSlots, TrainsFloatsOnly) {
  VariableStore store;
  const auto* counter = *store.Create("n", DType::kInt64, {}, variables::Kind::kCounter);
  EXPECT_FALSE(FindOrCreateSlots(Optimizer::Default(Kind::kAdam), *counter, store).ok());
}

}  // namespace
}  // namespace tfjob::exec
