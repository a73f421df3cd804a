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

TEST(Snapshot, MayHaveStreamedValues) {
  TrainingState state = TwoVariables();
  state.optimizer.use_ema = true;
  Snapshot snapshot;
  const auto value = StreamedConstant(DType::kFloat32, 3);
  for (const Variable& variable : state.variables)
    snapshot.variables.push_back(VariableState::Initial(variable, state.optimizer, value));
  EXPECT_TRUE(HasStreamedValues(snapshot));
  EXPECT_EQ(CheckFits(snapshot, state), OkStatus());
  // Adam's two slots are initially zero. The moving average initially equals the value.
  ASSERT_EQ(snapshot.variables[0].streamed.size(), 4u);
  std::vector<float> read(2);
  for (const auto& [part, expected] : {std::pair<size_t, float>{0, 3}, {1, 0}, {2, 0}, {3, 3}}) {
    ASSERT_EQ(
        snapshot.variables[0].streamed[part]->Read(8, std::as_writable_bytes(std::span(read))),
        OkStatus());
    EXPECT_EQ(read, std::vector<float>(2, expected)) << "part " << part;
  }
  const auto average = StreamedConstant(DType::kFloat32, 4);
  snapshot.variables[0].streamed[3] = average;
  UseAverages(state, snapshot);
  EXPECT_EQ(snapshot.variables[0].streamed[0], average);
  EXPECT_EQ(snapshot.variables[2].streamed[0], value) << "it has no average";
  snapshot.variables[1].streamed.pop_back();
  EXPECT_EQ(Message(CheckFits(snapshot, state)), "dense/bias: expected 3 slots, got 2");
  EXPECT_FALSE(HasStreamedValues(Snapshot()));
}

TEST(Snapshot, BeginsWithTheOptimizersSlots) {
  struct Case {
    optimizer::Kind kind;
    DType dtype;
    Update update;
    size_t slots;
    double value;  // the value of the first slot's elements
  };
  const Case cases[] = {
      {optimizer::Kind::kSgd, DType::kFloat32, Update::kGradient, 0, 0},
      {optimizer::Kind::kAdam, DType::kFloat64, Update::kGradient, 2, 0},
      {optimizer::Kind::kAdagrad, DType::kFloat32, Update::kGradient, 1, 0.125},
      {optimizer::Kind::kAdagrad, DType::kFloat64, Update::kGradient, 1, 0.125},
      {optimizer::Kind::kAdagrad, DType::kFloat32, Update::kAssign, 0, 0},
      {optimizer::Kind::kAdam, DType::kInt64, Update::kAssignAdd, 0, 0},
  };
  for (const Case& test : cases) {
    const Variable variable{.name = "v", .dtype = test.dtype, .shape = {2}, .update = test.update};
    optimizer::Optimizer optimizer = optimizer::Optimizer::Default(test.kind);
    optimizer.initial_accumulator_value = 0.125;
    const VariableState state =
        VariableState::Initial(variable, optimizer, Tensor(test.dtype, {2}));
    ASSERT_EQ(state.slots.size(), test.slots);
    if (test.slots == 0) continue;
    const Tensor& slot = state.slots[0];
    EXPECT_EQ(slot.shape(), variable.shape);
    ASSERT_EQ(slot.dtype(), test.dtype);
    EXPECT_EQ(test.dtype == DType::kFloat64 ? slot.data<double>()[1] : slot.data<float>()[1],
              test.value);
  }
}

TEST(Snapshot, AveragesBeginAsTheVariablesAndMayReplaceThem) {
  TrainingState state = TwoVariables();
  state.optimizer.use_ema = true;
  Snapshot snapshot;
  for (const Variable& variable : state.variables) {
    Tensor value(variable.dtype, variable.shape);
    value.data<float>()[0] = 3;
    snapshot.variables.push_back(VariableState::Initial(variable, state.optimizer, value));
  }
  ASSERT_TRUE(CheckFits(snapshot, state).ok());
  ASSERT_EQ(snapshot.variables[0].slots.size(), 3u);
  EXPECT_EQ(snapshot.variables[0].slots[2].data<float>()[0], 3);
  snapshot.variables[0].slots[2].data<float>()[0] = 4;
  EXPECT_EQ(snapshot.variables[0].value.data<float>()[0], 3) << "they share no memory";
  UseAverages(state, snapshot);
  EXPECT_EQ(snapshot.variables[0].value.data<float>()[0], 4);
  EXPECT_EQ(snapshot.variables[2].value.data<float>()[0], 3) << "no optimizer updates it";
  state.optimizer.use_ema = false;
  snapshot.variables[0].slots[0].data<float>()[0] = 5;
  UseAverages(state, snapshot);
  EXPECT_EQ(snapshot.variables[0].value.data<float>()[0], 4);
}

TEST(Snapshot, MustHaveTheTypesOfTheState) {
  const TrainingState state{.variables = {{.name = "w", .shape = {2}}}, .optimizer = {}};
  const std::pair<Tensor, const char*> cases[] = {
      {Tensor(DType::kFloat32, {2}), ""},
      {Tensor(DType::kFloat64, {2}), "w: expected float32[2], got float64[2]"},
      {Tensor(DType::kFloat32, {2, 1}), "w: expected float32[2], got float32[2,1]"},
      {Tensor(DType::kFloat32, {}), "w: expected float32[2], got float32[]"},
  };
  for (const auto& [value, expected] : cases) {
    const Snapshot snapshot{.variables = {{.value = value, .slots = {}}}, .ledger = "unread"};
    EXPECT_EQ(Message(CheckFits(snapshot, state)), expected);
  }
}

TEST(TrainingState, AllowsWhatCanBeUpdated) {
  TrainingState state;
  state.variables = {{.name = "scalar", .dtype = DType::kFloat64},
                     {.name = "empty", .shape = {0}},
                     {.name = "flag", .dtype = DType::kBool, .update = Update::kAssign},
                     {.name = "count", .dtype = DType::kInt64, .update = Update::kAssignAdd}};
  EXPECT_EQ(Validate(state), OkStatus());
  state.optimizer.learning_rate = -1;
  EXPECT_EQ(Validate(state), InvalidArgument("optimizer: learning_rate is -1: it must be a finite "
                                             "number, 0 or more"));
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
