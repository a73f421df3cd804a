// Tests Session::Function, which programs use to compose their own steps.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/api/programs.h"

namespace {

namespace ops = tj::ops;
using Symbols = std::vector<tj::Symbol>;

tj::Tensor Column(const std::vector<float>& values) {
  return tj::Tensor::Of({static_cast<int64_t>(values.size()), 1}, values).value();
}

// Implements the training loop of TensorFlow's guide to distributed training: a custom step for a
// model of one Dense layer runs on the replicas, and the sum of the losses is divided by the global
// batch size.
TEST(Function, TheLoopOfTensorFlowsGuideCanBeWritten) {
  std::vector<std::vector<float>> results;
  for (const tj::Strategy& strategy : {tj::Strategy::OneDevice(), tj::Strategy::Mirrored(2)}) {
    const tj::Session session(strategy, {.threads = 2});
    EXPECT_EQ(session.NumReplicasInSync(), strategy.name() == "mirrored" ? 2 : 1);
    const int64_t global_batch_size = 5 * 2;
    const tj::CompiledModel model =
        session
            .Compile(tj::Sequential({tj::Input{.shape = {1}}, tj::Dense{.units = 1}}),
                     {.optimizer = tj::SGD{.learning_rate = 0.2}})
            .value();
    const tj::data::Arrays ones = {.x = Column(std::vector<float>(100, 1)),
                                   .y = Column(std::vector<float>(100, 1))};
    tj::Function train_step =
        session
            .Function({{.shape = {1}}, {.shape = {1}}},
                      [&](tj::Step& step, const Symbols& inputs) {
                        const tj::Symbol features = inputs[0], labels = inputs[1];
                        const tj::Symbol logits = step.Call(model, features);
                        const tj::Symbol errors = ops::Square(logits - labels);
                        const tj::Symbol loss = ops::Sum(errors) * (1.0 / global_batch_size);
                        const Symbols variables = step.TrainableVariables(model);
                        const Symbols gradients = step.Gradients(loss, variables);
                        step.Apply(model, gradients);
                        step.Return("mean_loss", step.Reduce(tj::Reduction::kMean, errors, 0));
                        step.Return("errors", errors);
                      })
            .value();
    double mean_loss = 1;
    for (const tj::Batch& inputs :
         session.Distribute(ones, {.batch_size = global_batch_size}).value()) {
      const tj::StepResults result = train_step(inputs).value();
      EXPECT_EQ(result.at("errors").shape(), (std::vector<int64_t>{global_batch_size, 1}));
      mean_loss = result.number("mean_loss");
    }
    EXPECT_LT(mean_loss, 1e-6);
    EXPECT_EQ(model.step(), 10);
    const auto weights = WeightsOf(model);
    results.push_back({weights[0][0], weights[1][0]});
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(results[0][i], results[1][i], 1e-5);
  EXPECT_NEAR(results[0][0] + results[0][1], 1, 1e-3);
}

// Returns a discriminator for generated numbers, with or without batch normalization.
tj::Model Discriminator(bool normalized) {
  std::vector<tj::Layer> layers = {tj::Input{.shape = {1}},
                                   tj::Dense{.units = 8, .activation = "tanh"}};
  if (normalized) layers.push_back(tj::BatchNormalization{});
  layers.push_back(tj::Dense{.units = 1});
  return tj::Sequential(layers, "discriminator");
}

struct Gan {
  explicit Gan(const tj::Strategy& strategy, bool normalized = false)
      : session(strategy, {.threads = 2}),
        generator(session
                      .Compile(tj::Sequential({tj::Input{.shape = {2}}, tj::Dense{.units = 1}},
                                              "generator"),
                               {.optimizer = tj::SGD{.learning_rate = 0.1}})
                      .value()),
        discriminator(
            session
                .Compile(Discriminator(normalized), {.optimizer = tj::Adam{.learning_rate = 0.02}})
                .value()) {}

  // Returns the mean of -log sigmoid(±logits) over the examples of all replicas.
  static tj::Symbol Loss(tj::Step& step, const tj::Symbol& logits) {
    return -ops::Sum(ops::LogSigmoid(logits)) / step.NumExamples();
  }

  tj::Function DiscriminatorStep() {
    return session
        .Function({{.shape = {1}, .name = "real"}, {.shape = {2}, .name = "noise"}},
                  [this](tj::Step& step, const Symbols& in) {
                    const tj::Symbol fake = step.Call(generator, in[1]);
                    const tj::Symbol loss = Loss(step, step.Call(discriminator, in[0])) +
                                            Loss(step, -step.Call(discriminator, fake));
                    step.Minimize(discriminator, loss);
                    step.Return("loss", step.Reduce(tj::Reduction::kSum, loss));
                  })
        .value();
  }
  tj::Function GeneratorStep() {
    return session
        .Function({{.shape = {2}, .name = "noise"}},
                  [this](tj::Step& step, const Symbols& in) {
                    const tj::Symbol fake = step.Call(generator, in[0]);
                    const tj::Symbol loss =
                        Loss(step, step.Call(discriminator, fake, /*training=*/false));
                    step.Minimize(generator, loss);
                    step.Return("loss", step.Reduce(tj::Reduction::kSum, loss));
                    step.Return("fake", fake);
                  })
        .value();
  }

  // Trains the generator for `rounds` steps, and the discriminator for `k` steps before each of
  // these. Returns the mean of the last values that the generator has produced.
  double Train(int rounds, int k) {
    tj::Function train_discriminator = DiscriminatorStep(), train_generator = GeneratorStep();
    uint32_t state = 7;
    const auto draw = [&](int64_t width, float low, float high) {
      tj::Tensor made(tj::DType::kFloat32, {6, width});
      for (float& value : made.float32()) {
        state = state * 1664525 + 1013904223;
        value = low + (high - low) * static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
      }
      return made;
    };
    double mean = 0;
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < k; ++i) {
        const tj::Batch batch = {.inputs = {{"real", draw(1, 2, 4)}, {"noise", draw(2, -1, 1)}}};
        EXPECT_TRUE(std::isfinite(train_discriminator(batch).value().number("loss")));
      }
      const tj::StepResults made = train_generator({.inputs = {{"noise", draw(2, -1, 1)}}}).value();
      mean = 0;
      const tj::Tensor fake = made.at("fake");
      for (const float value : fake.float32()) mean += value / 6.0;
    }
    return mean;
  }

  tj::Session session;
  tj::CompiledModel generator, discriminator;
};

TEST(Function, AGanTrainsWithSeveralStepsOfTheDiscriminatorPerStepOfTheGenerator) {
  Gan gan(tj::Strategy::OneDevice());
  const double mean = gan.Train(150, 3);
  EXPECT_EQ(gan.generator.step(), 150);
  EXPECT_EQ(gan.discriminator.step(), 450);
  EXPECT_GT(mean, 1) << "the real values are from 2 to 4, and the first ones around 0";
  const tj::CompiledModel copy = gan.generator;
  EXPECT_EQ(WeightsOf(copy), WeightsOf(gan.generator));
}

TEST(Function, TwoDevicesTrainAGanAsOneDevice) {
  Gan one(tj::Strategy::OneDevice()), two(tj::Strategy::Mirrored(2));
  one.Train(3, 2);
  two.Train(3, 2);
  for (const auto& [first, second] : {std::pair(&one.generator, &two.generator),
                                      std::pair(&one.discriminator, &two.discriminator)}) {
    const auto expected = WeightsOf(*first), got = WeightsOf(*second);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t v = 0; v < got.size(); ++v) {
      for (size_t i = 0; i < got[v].size(); ++i) EXPECT_NEAR(got[v][i], expected[v][i], 1e-5);
    }
  }
}

// The two devices process {0, 2} and {10, 14}, with the means 1 and 12 and the variances 1 and 4.
TEST(Function, DevicesAverageMovingStatistics) {
  const tj::Session session(tj::Strategy::Mirrored(2), {.threads = 2});
  const tj::CompiledModel model =
      session
          .Compile(tj::Sequential({tj::Input{.shape = {1}},
                                   tj::BatchNormalization{.momentum = 0.5, .name = "norm"}}),
                   {})
          .value();
  tj::Function observe = session
                             .Function({{.shape = {1}}},
                                       [&](tj::Step& step, const Symbols& in) {
                                         step.Return("y", step.Call(model, in[0]));
                                       })
                             .value();
  observe({.x = Column({0, 2, 10, 14})}).value();
  std::map<std::string, tj::Tensor> weights;
  for (const auto& [name, tensor] : model.Weights().value()) weights[name] = tensor;
  EXPECT_NEAR(weights.at("norm/moving_mean").float32()[0], 0.5 * (1 + 12) / 2, 1e-5);
  EXPECT_NEAR(weights.at("norm/moving_variance").float32()[0], 0.5 + 0.5 * (1 + 4) / 2, 1e-5);
}

TEST(Function, OperationsBroadcastAsInNumPy) {
  const tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  const tj::CompiledModel model =
      session
          .Compile(tj::Sequential({tj::Input{.shape = {1}}, tj::Dense{.units = 2}}),
                   {.optimizer = tj::SGD{.learning_rate = 1.0}})
          .value();
  tj::Function scale = session
                           .Function({{.shape = {2}}},
                                     [&](tj::Step& step, const Symbols& in) {
                                       const Symbols variables = step.TrainableVariables(model);
                                       const tj::Symbol bias = variables[1];
                                       const tj::Symbol centred = in[0] - ops::Mean(in[0], {0});
                                       step.Return("centred", centred);
                                       const tj::Symbol loss = ops::Sum(in[0] * bias);
                                       const tj::Symbol slope = step.Gradients(loss, {bias})[0];
                                       step.Apply(model, {0 * variables[0], slope});
                                     })
                           .value();
  const tj::Tensor x = tj::Tensor::Of({2, 2}, std::vector<float>{1, 10, 3, 30}).value();
  const tj::Tensor centred = scale({.x = x}).value().at("centred");
  EXPECT_EQ(std::vector<float>(centred.float32().begin(), centred.float32().end()),
            (std::vector<float>{-1, -10, 1, 10}));
  EXPECT_EQ(WeightsOf(model)[1], (std::vector<float>{-4, -40}));
}

TEST(Function, RandomNumbersDifferBetweenRuns) {
  const tj::Session session(tj::Strategy::OneDevice());
  const tj::CompiledModel model =
      session.Compile(tj::Sequential({tj::Input{.shape = {1}}, tj::Dense{.units = 1}}), {}).value();
  tj::Function draw = session
                          .Function({{.shape = {1}}},
                                    [&](tj::Step& step, const Symbols& in) {
                                      (void)step.Call(model, in[0], false);
                                      step.Return("normal", step.RandomNormal({3}));
                                      step.Return("uniform", step.RandomUniform({}, 5, 6));
                                    })
                          .value();
  const tj::StepResults first = draw({.x = Column({1, 2})}).value();
  const tj::StepResults second = draw({.x = Column({1, 2})}).value();
  const tj::Tensor a = first.at("normal"), b = second.at("normal"), u = first.at("uniform");
  EXPECT_EQ(a.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_NE(a.float32()[0], b.float32()[0]);
  EXPECT_NE(a.float32()[0], a.float32()[3]);
  for (const float value : u.float32()) EXPECT_TRUE(value >= 5 && value < 6) << value;
}

// The inner gradient is d (w x)² / d x = 2 w² x. Its square is differentiated again.
TEST(Function, TakesGradientsOfGradients) {
  const tj::Session session(tj::Strategy::OneDevice());
  tj::CompiledModel model =
      session
          .Compile(tj::Sequential({tj::Input{.shape = {1}},
                                   tj::Dense{.units = 1, .use_bias = false, .name = "d"}}),
                   {.optimizer = tj::SGD{.learning_rate = 0.01}})
          .value();
  model.SetWeights({{"d/kernel", tj::Tensor::Of({1, 1}, std::vector<float>{2}).value()}}).value();
  tj::Function penalise = session
                              .Function({{.shape = {1}}},
                                        [&](tj::Step& step, const Symbols& in) {
                                          const tj::Symbol y = ops::Square(step.Call(model, in[0]));
                                          const tj::Symbol slope =
                                              step.Gradients(ops::Sum(y), {in[0]})[0];
                                          step.Minimize(model, ops::Sum(ops::Square(slope)));
                                          step.Return("slope", slope);
                                        })
                              .value();
  EXPECT_FLOAT_EQ(penalise({.x = Column({1})}).value().number("slope"), 8);
  // d (2 w² x)² / d w = 16 w³ x² = 128.
  EXPECT_FLOAT_EQ(WeightsOf(model)[0][0], 2 - 0.01F * 128);
}

}  // namespace
