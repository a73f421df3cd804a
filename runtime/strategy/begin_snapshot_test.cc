// Tests that a snapshot contains exactly the state between two steps, even if training continues
// before the values are copied.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "runtime/data/pipeline.h"
#include "runtime/model/layers/dense.h"
#include "runtime/strategy/one_device_strategy.h"

namespace tfjob::strategy {
namespace {

constexpr int64_t kFeatures = 40;

ModelDefinition TwoLayers(optimizer::Kind kind) {
  ModelDefinition definition;
  definition.model =
      model::Sequential("mlp", {{.name = "dense", .config = model::layers::Dense{.units = 60}},
                                {.name = "dense_1", .config = model::layers::Dense{.units = 1}}});
  definition.build.batch_size = 8;
  definition.build.features = model::Features({kFeatures});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer::Optimizer::Default(kind);
  definition.seed = 5;
  EXPECT_TRUE(DefineVariables(definition).ok());
  return definition;
}

// A task that trains alone.
class Task {
 public:
  explicit Task(optimizer::Kind kind,
                config::OnNonFinite on_non_finite = config::OnNonFinite::kFail)
      : definition_(TwoLayers(kind)) {
    strategy_ = *MakeOneDevice(
        {.task_type = "chief", .incarnation = 1},
        {.definition = definition_,
         .device = exec::CpuDevice(),
         .on_non_finite = on_non_finite,
         .provide_state = [this](const state::Snapshot*) -> StatusOr<state::Snapshot> {
           return InitialState(definition_);
         }});
    auto dataset = std::make_shared<const data::Dataset>(
        *data::MakeLinear({.weights = std::vector<double>(kFeatures, 0.5), .examples = 64}));
    batches_ = *data::Pipeline::Create(
        dataset, {.batch_size = 8, .prefetch = 0, .columns = data::FloatColumns(*dataset)});
    EXPECT_TRUE(strategy_->Start().ok());
  }

  void Train(int steps) {
    MetricTotals ignored;
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(strategy_->Step(*batches_->Next(), ignored).ok());
  }
  Strategy& strategy() { return *strategy_; }

 private:
  const ModelDefinition definition_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<data::Pipeline> batches_;
};

// Returns the values of all variables and slots.
std::vector<float> ValuesOf(const state::Snapshot& snapshot) {
  std::vector<float> values;
  const auto add = [&](const Tensor& tensor) {
    values.insert(values.end(), tensor.data<float>().begin(), tensor.data<float>().end());
  };
  for (const state::VariableState& variable : snapshot.variables) {
    add(variable.value);
    for (const Tensor& slot : variable.slots) add(slot);
  }
  return values;
}

TEST(BeginSnapshot, HoldsTheStateFromBeforeTheStepsThatFollow) {
  for (const auto rule : {config::OnNonFinite::kFail, config::OnNonFinite::kSkip}) {
    Task task(optimizer::Kind::kAdam, rule);
    task.Train(5);
    const std::vector<float> expected = ValuesOf(*task.strategy().TakeSnapshot());
    const StatusOr<state::SnapshotCopy> copy = task.strategy().BeginSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
    task.Train(3);
    EXPECT_EQ(copy->global_step(), 5);
    EXPECT_EQ(copy->Finish().global_step, 5);
    EXPECT_EQ(ValuesOf(copy->Finish()), expected);
    EXPECT_NE(ValuesOf(*task.strategy().TakeSnapshot()), expected);
  }
}

TEST(BeginSnapshot, OutlivesItsStrategy) {
  std::optional<state::SnapshotCopy> copy;
  std::vector<float> expected;
  {
    Task task(optimizer::Kind::kAdam);
    task.Train(2);
    expected = ValuesOf(*task.strategy().TakeSnapshot());
    copy = *task.strategy().BeginSnapshot();
  }
  EXPECT_EQ(ValuesOf(copy->Finish()), expected);
}

TEST(BeginSnapshot, ItsMemoryIsNotThatOfTheVariables) {
  Task task(optimizer::Kind::kSgd);
  state::Snapshot snapshot = *task.strategy().TakeSnapshot();
  snapshot.variables[0].value.data<float>()[0] = 77;
  EXPECT_NE(ValuesOf(*task.strategy().TakeSnapshot())[0], 77);
}

// Like the saver's thread, a separate thread finishes the snapshots one after another, at arbitrary
// times during the steps.
TEST(BeginSnapshot, OfATaskThatTrainsOnIsThatOfOneThatStops) {
  std::mt19937 random(3);
  Task trains_on(optimizer::Kind::kAdam), stops(optimizer::Kind::kAdam);
  for (int round = 0; round < 40; ++round) {
    const state::SnapshotCopy copy = *trains_on.strategy().BeginSnapshot();
    const std::vector<float> expected = ValuesOf(*stops.strategy().TakeSnapshot());
    std::thread saver([&, delay = random() % 200] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      EXPECT_EQ(ValuesOf(copy.Finish()), expected);
    });
    trains_on.Train(3);
    stops.Train(3);
    saver.join();
  }
}

}  // namespace
}  // namespace tfjob::strategy
