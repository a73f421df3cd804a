// Tests that functions and the methods of CompiledModel, such as Fit and Evaluate, see each other's
// changes to the variables.
#include <gtest/gtest.h>

#include "tests/api/programs.h"

namespace {

namespace ops = tj::ops;
using Symbols = std::vector<tj::Symbol>;

tj::Tensor Column(const std::vector<float>& values) {
  return tj::Tensor::Of({static_cast<int64_t>(values.size()), 1}, values).value();
}

TEST(FunctionState, SeesValuesThatOtherFunctionsHaveSet) {
  const tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  tj::CompiledModel model =
      session
          .Compile(tj::Sequential({tj::Input{.shape = {1}},
                                   tj::Dense{.units = 1, .use_bias = false, .name = "d"}}),
                   {.optimizer = tj::SGD{.learning_rate = 0.1}, .loss = "mean_squared_error"})
          .value();
  tj::Function product =
      session
          .Function({{.shape = {1}, .name = "x"}, {.shape = {1}, .name = "y"}},
                    [&](tj::Step& step, const Symbols& in) {
                      const tj::Symbol y = step.Call(model, in[0]);
                      step.Minimize(model, ops::Sum(ops::Square(y - in[1])) / step.NumExamples());
                      step.Return("y", y);
                    })
          .value();
  model.SetWeights({{"d/kernel", tj::Tensor::Of({1, 1}, std::vector<float>{2}).value()}}).value();
  const tj::Batch batch = {.x = Column({3}), .y = Column({6})};
  EXPECT_EQ(product(batch).value().number("y"), 6);
  EXPECT_EQ(model.step(), 1);
  EXPECT_EQ(WeightsOf(model)[0][0], 2);
  tj::FitOptions once = Quietly(1);
  const tj::Batch other = {.x = Column({1}), .y = Column({0})};
  model.Fit(other, once).value();  // 2 - 0.1 · 2 · 2
  EXPECT_NEAR(product(batch).value().number("y"), 3 * 1.6, 1e-5);
  model.Step(other).value();
  const float weight = WeightsOf(model)[0][0];
  EXPECT_NEAR(product(batch).value().number("y"), 3 * weight, 1e-5);
  EXPECT_EQ(model.step(), 5);
}

// Compiles a small model whose inputs are normalized.
tj::CompiledModel Normalized(const tj::Session& session, const tj::Optimizer& optimizer) {
  return session
      .Compile(tj::Sequential({tj::Input{.shape = {1}}, tj::BatchNormalization{},
                               tj::Dense{.units = 3, .activation = "tanh", .name = "d"},
                               tj::Dense{.units = 1, .name = "last"}}),
               {.optimizer = optimizer, .loss = "mean_squared_error"})
      .value();
}

// Returns a function that takes the same step as CompiledModel::Step.
tj::Function TrainStep(const tj::Session& session, const tj::CompiledModel& model) {
  return session
      .Function({{.shape = {1}}, {.shape = {1}}},
                [&](tj::Step& step, const Symbols& in) {
                  const tj::Symbol errors = ops::Square(step.Call(model, in[0]) - in[1]);
                  step.Minimize(model, ops::Sum(errors) / step.NumExamples());
                  step.Return("errors", errors);
                })
      .value();
}

void ExpectNear(const tj::CompiledModel& model, const tj::CompiledModel& expected) {
  const auto values = WeightsOf(model), wanted = WeightsOf(expected);
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t v = 0; v < values.size(); ++v) {
    for (size_t i = 0; i < values[v].size(); ++i)
      EXPECT_NEAR(values[v][i], wanted[v][i], 1e-5) << v << " " << i;
  }
}

TEST(FunctionState, GoesOnWithTheStateOfTheOptimizer) {
  const tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  const tj::Batch batch = {.x = Column({1, -2, 3, 0.5F}), .y = Column({2, 1, 0, 1})};
  tj::CompiledModel stepped = Normalized(session, tj::Adam{.learning_rate = 0.1}),
                    model = Normalized(session, tj::Adam{.learning_rate = 0.1});
  for (tj::CompiledModel* each : {&stepped, &model}) each->Fit(batch, Quietly(3)).value();
  // Place the variables on the device before the optimizer needs its slots there.
  const auto call = [&](const tj::CompiledModel& of, bool training) {
    session
        .Function({{.shape = {1}}},
                  [&](tj::Step& step, const Symbols& in) {
                    step.Return("y", step.Call(of, in[0], training));
                  })
        .value()({.x = batch.x})
        .value();
  };
  call(model, /*training=*/false);
  tj::Function train = TrainStep(session, model);
  train(batch).value();
  stepped.Step(batch).value();
  ExpectNear(model, stepped);
}

TEST(FunctionState, MakingAFunctionKeepsTheStateOfTheOptimizer) {
  const tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  const tj::Batch batch = {.x = Column({1, -2, 3, 0.5F}), .y = Column({2, 1, 0, 1})};
  std::vector<tj::CompiledModel> models;
  for (const bool make : {false, true}) {
    tj::CompiledModel model = Normalized(session, tj::Adam{.learning_rate = 0.1});
    model.Fit(batch, Quietly(3)).value();
    tj::Function observe = session
                               .Function({{.shape = {1}}},
                                         [&](tj::Step& step, const Symbols& in) {
                                           step.Return("y", step.Call(model, in[0]));
                                         })
                               .value();
    observe({.x = batch.x}).value();  // changes the moving statistics
    if (make) (void)TrainStep(session, model);
    model.Step(batch).value();
    models.push_back(std::move(model));
  }
  ExpectNear(models[1], models[0]);
}

TEST(FunctionState, PatternsWithoutWeightDecaySeeTheNamesOfTheModel) {
  const tj::Batch batch = {.x = Column({1, -2, 3, 0.5F}), .y = Column({2, 1, 0, 1})};
  const tj::AdamW optimizer = {
      .learning_rate = 0.1, .weight_decay = 0.5, .exclude_from_weight_decay = {"^d/", "model"}};
  for (const tj::Strategy& strategy : {tj::Strategy::OneDevice(), tj::Strategy::Mirrored(2)}) {
    const tj::Session of(strategy, {.threads = 2});
    tj::CompiledModel stepped = Normalized(of, optimizer), model = Normalized(of, optimizer);
    tj::Function train = TrainStep(of, model);
    train(batch).value();
    stepped.Step(batch).value();
    ExpectNear(model, stepped);
  }
}

}  // namespace
