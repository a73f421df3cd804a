#include "runtime/exec/group_updates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/optimizer/optimizer.h"

namespace tfjob::exec {
namespace {

using kernels::Operand;

const Operand kVector = Operand::Dense(DType::kFloat32, {4});
const Operand kNumber = Operand::Dense(DType::kInt64, {});

Value Variable(int index) {
  return {Home::kVariable, index, kVector};
}
Value Buffer(int index, const Operand& operand = kVector) {
  return {Home::kArena, index, operand};
}

// Builds plans of SGD updates and other steps.
class PlanBuilder {
 public:
  // Adds a step that computes buffer `output` from `inputs`.
  void Compute(std::vector<Value> inputs, const Value& output) {
    const int step = static_cast<int>(plan_.steps.size());
    if (output.index >= static_cast<int>(plan_.buffers.size()))
      plan_.buffers.push_back({output.operand.bytes(), step, step});
    Add("Square", {}, std::move(inputs), {output});
  }
  void Update(int variable, const Value& gradient, double rate = 0.1) {
    optimizer::Optimizer sgd;
    sgd.learning_rate = rate;
    Attributes attributes = ToAttributes(sgd);
    attributes.Set("variable", StrCat("v", variable));
    Value written = Variable(variable);
    written.operand = gradient.operand;
    Add("ApplyOptimizer", attributes, {{Home::kFeed, 0, kNumber}, gradient, written}, {written});
  }
  void Fetch(int ready) { plan_.fetches.push_back({"fetch", Buffer(0), ready}); }

  Plan& Grouped() {
    GroupUpdates(plan_);
    return plan_;
  }

 private:
  void Add(std::string op, Attributes attributes, std::vector<Value> inputs,
           std::vector<Value> outputs) {
    const int step = static_cast<int>(plan_.steps.size());
    for (const Value& input : inputs) {
      if (input.home != Home::kArena) continue;
      int& last = plan_.buffers[static_cast<size_t>(input.index)].last;
      last = std::max(last, step);
    }
    plan_.steps.push_back({StrCat("step ", step),
                           {std::move(op), std::move(attributes), {}, {}},
                           std::move(inputs),
                           std::move(outputs)});
  }

  Plan plan_;
};

std::string OpsOf(const Plan& plan) {
  std::string ops;
  for (const PlannedStep& step : plan.steps) ops += (ops.empty() ? "" : " ") + step.request.op;
  return ops;
}

TEST(GroupUpdates, UpdatesOfOneOptimizerAreOneStep) {
  PlanBuilder b;
  b.Compute({}, Buffer(0));
  b.Update(0, Buffer(0));
  b.Compute({}, Buffer(1));
  b.Update(1, Buffer(1));
  b.Compute({}, Buffer(2));
  b.Fetch(5);
  const Plan& plan = b.Grouped();
  ASSERT_EQ(OpsOf(plan), "Square Square Square ApplyOptimizers");
  const PlannedStep& merged = plan.steps.back();
  ASSERT_EQ(merged.inputs.size(), 5U);
  EXPECT_EQ(merged.inputs[1].index, 1);
  EXPECT_EQ(merged.inputs[2].home, Home::kFeed);
  EXPECT_EQ(merged.inputs[3].index, 0);
  EXPECT_EQ(merged.inputs[4].home, Home::kArena);
  EXPECT_EQ(merged.outputs.size(), 2U);
  EXPECT_EQ(merged.request.inputs.size(), 5U);
  // The gradients are kept until the last step, and the third buffer is not.
  EXPECT_EQ(plan.buffers[0].first, 0);
  EXPECT_EQ(plan.buffers[0].last, 3);
  EXPECT_EQ(plan.buffers[1].last, 3);
  EXPECT_EQ(plan.buffers[2].last, 2);
  EXPECT_EQ(plan.fetches[0].ready, 3);
}

TEST(GroupUpdates, OtherSettingsAreAnotherGroup) {
  PlanBuilder b;
  b.Compute({}, Buffer(0));
  b.Update(0, Buffer(0), 0.1);
  b.Update(1, Buffer(0), 0.2);
  b.Update(2, Buffer(0), 0.1);
  EXPECT_EQ(OpsOf(b.Grouped()), "Square ApplyOptimizers ApplyOptimizer");
}

TEST(GroupUpdates, ALaterReadOfAVariableSeesItsUpdate) {
  PlanBuilder b;
  b.Compute({}, Buffer(0));
  b.Update(0, Buffer(0));
  b.Update(1, Buffer(0));
  b.Compute({Variable(1)}, Buffer(1));
  b.Update(2, Buffer(0));
  EXPECT_EQ(OpsOf(b.Grouped()), "Square ApplyOptimizers Square ApplyOptimizer");
}

TEST(GroupUpdates, AGradientIsUsedBeforeItIsOverwritten) {
  PlanBuilder b;
  b.Compute({}, Buffer(0));
  b.Update(0, Buffer(0));
  b.Compute({Buffer(0)}, Buffer(0));
  b.Update(1, Buffer(0));
  EXPECT_EQ(OpsOf(b.Grouped()), "Square ApplyOptimizer Square ApplyOptimizer");
}

TEST(GroupUpdates, ALargeGradientIsAppliedAtOnce) {
  const auto elements = static_cast<int64_t>(kMostGroupedGradient / 4 + 1);
  const Value large = Buffer(0, Operand::Dense(DType::kFloat32, {elements}));
  PlanBuilder b;
  b.Compute({}, large);
  b.Update(0, large);
  b.Update(1, large);
  b.Compute({}, Buffer(1));
  EXPECT_EQ(OpsOf(b.Grouped()), "Square ApplyOptimizer ApplyOptimizer Square");
}

TEST(GroupUpdates, AGroupKeepsAFewMegabytesOfGradients) {
  const auto elements = static_cast<int64_t>(kMostGroupedGradient / 4);
  const Value gradient = Buffer(0, Operand::Dense(DType::kFloat32, {elements}));
  constexpr int kInGroup = static_cast<int>(kMostGroupedGradients / kMostGroupedGradient);
  PlanBuilder b;
  b.Compute({}, gradient);
  for (int i = 0; i < kInGroup + 2; ++i) b.Update(i, gradient);
  EXPECT_EQ(OpsOf(b.Grouped()), "Square ApplyOptimizers ApplyOptimizers");
}

TEST(GroupUpdates, FetchesAreKeptForever) {
  PlanBuilder b;
  b.Compute({}, Buffer(0));
  b.Update(0, Buffer(0));
  b.Compute({}, Buffer(1));
  Plan plan = b.Grouped();
  constexpr int kForever = std::numeric_limits<int>::max();
  plan.buffers[0].last = kForever;
  GroupUpdates(plan);
  EXPECT_EQ(plan.buffers[0].last, kForever);
}

}  // namespace
}  // namespace tfjob::exec
