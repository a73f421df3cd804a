#include "runtime/state/snapshot.h"

#include <gtest/gtest.h>

namespace tfjob::state {
namespace {

TrainingState TwoVariables() {
  return {.variables = {{.name = "dense/kernel", .shape = {4, 10}},
                        {.name = "dense/bias", .shape = {10}},
                        {.name = "mean", .shape = {10}, .update = Update::kAssign}},
          .optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam)};
}

TEST(Snapshot, MustFitTheState) {
  const TrainingState state = TwoVariables();
  Snapshot snapshot;
  for (const Variable& variable : state.variables) {
    snapshot.variables.push_back(
        VariableState::Initial(variable, state.optimizer, Tensor(variable.dtype, variable.shape)));
  }
  EXPECT_TRUE(CheckFits(snapshot, state).ok());
  EXPECT_TRUE(snapshot.variables[2].slots.empty());
  snapshot.variables[1].slots[1] = Tensor(DType::kFloat32, {11});
  EXPECT_EQ(Message(CheckFits(snapshot, state)),
            "dense/bias/Adam_1: expected float32[10], got float32[11]");
  snapshot.variables[1].slots.pop_back();
  EXPECT_EQ(Message(CheckFits(snapshot, state)), "dense/bias: expected 2 slots, got 1");
  snapshot.variables.pop_back();
  EXPECT_EQ(Message(CheckFits(snapshot, state)), "the state has 2 variables, the job 3");
}

TEST(TrainingState, RefusesWhatCannotBeUpdated) {
  struct Case {
    const char* expected;
    void (*change)(TrainingState&);
  };
  const Case cases[] = {
      {"", [](TrainingState&) {}},
      {"two variables are called dense/kernel",
       [](TrainingState& s) { s.variables[1].name = "dense/kernel"; }},
      {"variable dense/kernel: negative dimension -1",
       [](TrainingState& s) { s.variables[0].shape = Shape({-1}); }},
      {"variable dense/kernel: an optimizer updates only float32 and float64, not int32",
       [](TrainingState& s) { s.variables[0].dtype = DType::kInt32; }},
      {"variable mean: cannot add to a value of type bool",
       [](TrainingState& s) {
         s.variables[2].dtype = DType::kBool;
         s.variables[2].update = Update::kAssignAdd;
       }},
  };
  for (const Case& c : cases) {
    TrainingState state = TwoVariables();
    c.change(state);
    EXPECT_EQ(Message(Validate(state)), c.expected);
  }
}

}  // namespace
}  // namespace tfjob::state
