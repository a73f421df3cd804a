// Tests layers that programs define.
#include <gtest/gtest.h>

#include "tests/api/programs.h"

namespace {

namespace ops = tj::ops;
using Symbols = std::vector<tj::Symbol>;
using Body = std::function<tj::Symbol(const Symbols& inputs, const Symbols& variables)>;

tj::Symbol Affine(const Symbols& in, const Symbols& variables) {
  return ops::Matmul(in[0], variables[0]) + variables[1];
}

// Computes the same as Dense.
tj::CustomLayer OwnDense(int64_t inputs, int64_t units, const std::string& name = "") {
  return {.variables = {{.name = "kernel", .shape = {inputs, units}},
                        {.name = "bias", .shape = {units}, .initializer = "zeros"}},
          .call = Affine,
          .name = name};
}

tj::Model WithOwnLayers() {
  return tj::Sequential({tj::Input{.shape = {2}}, OwnDense(2, 8, "dense"),
                         tj::Activation{.activation = "tanh"}, OwnDense(8, 2, "logits")});
}

tj::CompiledModel CompiledWith(const tj::Model& model, const tj::Strategy& strategy) {
  return tj::Session(strategy, {.threads = 1}).Compile(model, Options()).value();
}

void ExpectNear(const tj::CompiledModel& own, const tj::CompiledModel& built_in) {
  const auto weights = own.Weights().value(), expected = built_in.Weights().value();
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(weights[i].first, expected[i].first);
    ASSERT_EQ(weights[i].second.shape(), expected[i].second.shape());
    for (size_t j = 0; j < static_cast<size_t>(weights[i].second.size()); ++j)
      EXPECT_NEAR(weights[i].second.float32()[j], expected[i].second.float32()[j], 1e-5);
  }
}

TEST(CustomLayer, TrainsLikeTheSameBuiltInLayer) {
  for (const tj::Strategy& strategy : {tj::Strategy::OneDevice(), tj::Strategy::Mirrored(2)}) {
    tj::CompiledModel own = CompiledWith(WithOwnLayers(), strategy);
    tj::CompiledModel built_in = CompiledWith(Classifier(), strategy);
    ExpectNear(own, built_in);  // the initial values depend only on the names and the seed
    ASSERT_TRUE(own.Fit(Points(100), Quietly(3)).ok());
    ASSERT_TRUE(built_in.Fit(Points(100), Quietly(3)).ok());
    ExpectNear(own, built_in);
  }
}

TEST(CustomLayer, IsSavedAndLoaded) {
  tj::CompiledModel model = Compiled(WithOwnLayers());
  ASSERT_TRUE(model.Fit(Points(64), Quietly(1)).ok());
  for (const char* name : {"own.safetensors", "own.weights.h5", "own.keras", "own.h5"}) {
    const std::string path = Temp(name);
    const tj::Status saved = model.Save(path);
    ASSERT_TRUE(saved.ok()) << name << ": " << saved;
    tj::CompiledModel other = Compiled(WithOwnLayers());
    const tj::Status loaded = other.LoadWeights(path);
    ASSERT_TRUE(loaded.ok()) << name << ": " << loaded;
    EXPECT_EQ(WeightsOf(other), WeightsOf(model)) << name;
  }
  const auto whole = tj::Session(tj::Strategy::OneDevice()).Load(testing::TempDir() + "/own.keras");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(WeightsOf(*whole), WeightsOf(model));
  const tj::Tensor points = Points(8).x;
  tj::CompiledModel loaded = *whole;
  const tj::Tensor outputs = loaded.Predict(points).value(),
                   expected = model.Predict(points).value();
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(outputs.float32()[i], expected.float32()[i]);
  ASSERT_TRUE(model.SaveCheckpoint(Temp("own_checkpoint")).ok());
  tj::CompiledModel restored = Compiled(WithOwnLayers());
  ASSERT_TRUE(restored.LoadCheckpoint(testing::TempDir() + "/own_checkpoint").ok());
  EXPECT_EQ(WeightsOf(restored), WeightsOf(model));
}

TEST(CustomLayer, SharesItsVariablesAndTakesSeveralInputs) {
  const tj::Layer mix =
      tj::CustomLayer{.variables = {{.name = "share", .shape = {1}, .initializer = "zeros"}},
                      .call =
                          [](const Symbols& in, const Symbols& variables) {
                            const tj::Symbol share = ops::Sigmoid(variables[0]);
                            return share * in[0] + (1 - share) * in[1];
                          },
                      .inputs = 2};
  const tj::Symbol x = tj::Input{.shape = {2}};
  const tj::Symbol once = mix({x, 2 * x});
  tj::CompiledModel model =
      Compiled(tj::Functional(x, tj::Dense{.units = 2, .name = "logits"}(mix({once, x}))));
  const auto weights = model.Weights().value();
  ASSERT_EQ(weights.size(), 3U) << "both calls use the same variable";
  EXPECT_EQ(weights[0].first, "custom_layer/share");
  ASSERT_TRUE(model.Fit(Points(64), Quietly(2)).ok());
  EXPECT_NE(WeightsOf(model)[0][0], 0);
}

TEST(CustomLayer, MayBeFrozenAndRegularized) {
  tj::CustomLayer scale = {
      .variables = {{.name = "scale", .shape = {2}, .initializer = "ones", .regularizer = "l2"},
                    {.name = "shift", .shape = {2}, .initializer = "ones", .trainable = false}},
      .call = [](const Symbols& in, const Symbols& v) { return in[0] * v[0] + v[1]; },
      .name = "scale"};
  const auto losses = [&](bool trainable) {
    scale.trainable = trainable;
    const tj::Model model = tj::Sequential(
        {tj::Input{.shape = {2}}, scale, tj::Dense{.units = 2, .kernel_initializer = "zeros"}});
    tj::CompiledModel compiled = Compiled(model);
    // All logits are 0, so the loss is log(2) and the penalty: 0.01 (1² + 1²). As in Keras, frozen
    // variables have no penalty.
    EXPECT_NEAR(compiled.Evaluate(Points(10)).value()["loss"], 0.693147 + (trainable ? 0.02 : 0),
                1e-5);
    EXPECT_TRUE(compiled.Fit(Points(64), Quietly(2)).ok());
    const auto weights = WeightsOf(compiled);
    EXPECT_EQ(weights[0] == (std::vector<float>{1, 1}), !trainable);
    EXPECT_EQ(weights[1], (std::vector<float>{1, 1}));
  };
  losses(true);
  losses(false);
}

TEST(CustomLayer, ComputesInMixedPrecision) {
  tj::CompiledModel model = Compiled(WithOwnLayers().WithDTypePolicy("mixed_bfloat16"));
  ASSERT_TRUE(model.Fit(Points(64), Quietly(1)).ok());
}

std::string ErrorOf(const tj::Layer& layer) {
  const tj::Model model = tj::Sequential({tj::Input{.shape = {2}}, layer});
  if (!model.status().ok()) return model.status().message();
  return tj::Session(tj::Strategy::OneDevice()).Compile(model, {}).status().message();
}

std::string ErrorOf(const Body& call) {
  return ErrorOf(tj::CustomLayer{.variables = {{.name = "w", .shape = {2, 2}}}, .call = call});
}

TEST(CustomLayer, KeepsExamplesApart) {
  const std::string expected = "computes each example separately";
  const auto expect = [&](const Body& call) {
    const std::string error = ErrorOf(call);
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  expect([](const Symbols& in, const Symbols&) { return in[0] - ops::Mean(in[0], {0}); });
  expect([](const Symbols& in, const Symbols&) { return ops::Transpose(in[0], {1, 0}); });
  // Broadcasting would compute all differences between two examples.
  expect([](const Symbols& in, const Symbols&) {
    return ops::Mean(ops::Mean(in[0], {1}, true) - ops::Mean(in[0], {1}), {1}, true);
  });
  expect([](const Symbols& in, const Symbols&) { return ops::Einsum("bi,ci->bc", in[0], in[0]); });
  expect([](const Symbols& in, const Symbols&) { return ops::Einsum("bi,ci->bi", in[0], in[0]); });
  const std::string error =
      ErrorOf([](const Symbols& in, const Symbols& w) { return ops::Matmul(w[0], in[0]); });
  EXPECT_NE(error.find("expected equal inner dimensions"), std::string::npos) << error;
  EXPECT_EQ(ErrorOf([](const Symbols& in, const Symbols& w) {
              return ops::Einsum("bi,ij->bj", in[0], ops::Transpose(w[0], {1, 0}));
            }),
            "");
}

TEST(CustomLayer, IsChecked) {
  const auto expect = [](const std::string& error, const std::string& expected) {
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  };
  expect(ErrorOf(tj::CustomLayer{.name = "own"}),
         "layer own (CustomLayer): call: expected a function");
  expect(ErrorOf([](const Symbols&, const Symbols& w) { return w[0] + 1; }),
         "expected an output that depends on an input of the layer");
  expect(ErrorOf([](const Symbols& in, const Symbols&) { return tj::Dense{.units = 1}(in[0]); }),
         "expected only operations, got layer dense (Dense)");
  const auto identity = [](const Symbols& in, const Symbols&) { return 1 * in[0]; };
  expect(ErrorOf(tj::CustomLayer{.variables = {{.name = "a/b", .shape = {1}}}, .call = identity}),
         "variable \"a/b\": expected a name of letters, digits and '_'");
  expect(ErrorOf(tj::CustomLayer{.variables = {{.name = "a"}, {.name = "a"}}, .call = identity}),
         "two variables are called a");
  expect(ErrorOf(tj::CustomLayer{.variables = {{.name = "a", .shape = {0}}}, .call = identity}),
         "expected a length of at least 1, got 0");
  expect(ErrorOf(tj::CustomLayer{
             .variables = {{.name = "a", .shape = {2}, .initializer = "glorot_unifrom"}},
             .call = identity}),
         "glorot_uniform");
  const tj::Symbol x = tj::Input{.shape = {2}};
  const tj::Layer one = tj::CustomLayer{.call = identity};
  expect(tj::Functional(x, one({x, x})).status().message(), "expected 1 inputs, got 2");
}

}  // namespace
