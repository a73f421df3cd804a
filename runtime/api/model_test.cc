// Tests the construction of models from layers.
#include "runtime/api/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "runtime/api/layers.h"

namespace tfjob::api {
namespace {

std::string SummaryOf(const Model& model) {
  const Result<std::string> summary = model.Summary();
  return summary.ok() ? *summary : summary.status().message();
}

TEST(Sequential, IsAChainOfLayers) {
  const Model model =
      Sequential({Input{.shape = {4, 3}}, Flatten{}, Dense{.units = 8, .activation = "relu"},
                  Dropout{.rate = 0.5}, Dense{.units = 2, .name = "logits"}});
  ASSERT_TRUE(model.status().ok()) << model.status();
  const std::string summary = SummaryOf(model);
  EXPECT_NE(summary.find("dense (Dense)"), std::string::npos) << summary;
  EXPECT_NE(summary.find("logits (Dense)"), std::string::npos) << summary;
  EXPECT_NE(summary.find("Parameters: 122\n"), std::string::npos) << summary;
}

TEST(Sequential, ItsErrorsNameTheLayerAndTheArgument) {
  const Status unknown =
      Sequential({Dense{.units = 3, .activation = "rely", .name = "head"}}).status();
  EXPECT_NE(unknown.message().find("head"), std::string::npos) << unknown;
  EXPECT_NE(unknown.message().find("activation"), std::string::npos) << unknown;
  const Status none = Sequential({Dense{}}).status();
  EXPECT_NE(none.message().find("units"), std::string::npos) << none;
  EXPECT_FALSE(Sequential({}).status().ok());
  EXPECT_EQ(Sequential({Flatten{}, Layer()}, "m").status().message(),
            "layer 1 of model m has no class");
}

TEST(Sequential, ItsErrorsNameRequiredArgumentsThatAreMissing) {
  const std::vector<std::pair<Layer, std::string>> incomplete = {
      {Dropout{}, "rate"},
      {GaussianNoise{}, "stddev"},
      {Activation{}, "activation"},
      {RepeatVector{}, "n"},
      {Embedding{.input_dim = 10}, "output_dim"},
      {Conv2D{.filters = 32, .strides = 2}, "kernel_size"},
      {Conv2D{.kernel_size = 3}, "filters"},
      {DepthwiseConv2D{}, "kernel_size"},
      {AdaptiveAveragePooling2D{}, "output_size"},
      {LSTM{}, "units"},
      {MultiHeadAttention{.key_dim = 16}, "num_heads"},
  };
  for (const auto& [layer, argument] : incomplete) {
    const Status status = Sequential({layer}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << argument;
    EXPECT_NE(status.message().find(argument), std::string::npos) << status;
  }
}

TEST(Sequential, TakesALayerOnce) {
  const Layer d = Dense{.units = 4};
  EXPECT_NE(Sequential({Input{.shape = {4}}, d, Flatten{}, d}, "m")
                .status()
                .message()
                .find("layer 3 of model m is also layer 1; a Sequential takes a layer once"),
            std::string::npos);
  const Model block = Sequential({Input{.shape = {4}}, Dense{.units = 4}});
  EXPECT_FALSE(Sequential({Input{.shape = {4}}, block, block}).status().ok());
}

TEST(Sequential, NumbersMustBeFinite) {
  EXPECT_EQ(Sequential({BatchNormalization{.momentum = NAN}}).status().message(),
            "BatchNormalization: momentum: expected a finite number, got nan");
  EXPECT_FALSE(Sequential({LeakyReLU{.negative_slope = INFINITY}}).status().ok());
  EXPECT_EQ(Sequential({Dense{.units = 1, .kernel_regularizer = {"l2", {{"l2", NAN}}}}})
                .status()
                .message(),
            "Dense: kernel_regularizer.l2: expected a finite number, got nan");
  EXPECT_FALSE(
      Sequential({Dense{.units = 1, .kernel_regularizer = {"", {{"l2", 0.1}}}}}).status().ok());
}

TEST(Sequential, WithoutAnInputTheShapeIsUnknown) {
  EXPECT_NE(SummaryOf(Sequential({Dense{.units = 1}})).find("does not state the shape"),
            std::string::npos);
}

TEST(Sequential, ArgumentsOfAllKindsAreRead) {
  const Model model = Sequential({
      Input{.shape = {8, 8, 3}},
      ZeroPadding2D{.padding = {1, 0, 0, 2}},
      Conv2D{.filters = 4,
             .kernel_size = 3,
             .strides = {2, 1},
             .padding = "same",
             .kernel_initializer = {"random_normal", {{"stddev", 0.5}}},
             .kernel_regularizer = {"l2", {{"l2", 0.25}}},
             .kernel_constraint = "non_neg"},
      BatchNormalization{.momentum = 0.5, .trainable = false},
      ReLU{.max_value = 6},
      GlobalAveragePooling2D{},
      Dense{.units = 1},
  });
  ASSERT_TRUE(model.status().ok()) << model.status();
  const std::string json = model.ToJson().value();
  for (const char* part :
       {R"("kernel_size":[3,3])", R"("strides":[2,1])", R"("stddev":0.5)", R"("l2":0.25)",
        R"("NonNeg")", R"("momentum":0.5)", R"("max_value":6.0)", R"("padding":[[1,0],[0,2]])"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
  }
}

TEST(Sequential, LayersContainLayers) {
  const Model model = Sequential({
      Input{.shape = {5, 2}},
      Bidirectional{.layer = LSTM{.units = 3, .return_sequences = true}},
      TimeDistributed{.layer = Dense{.units = 4}},
      RNN{.cell = GRUCell{.units = 2}},
  });
  ASSERT_TRUE(model.status().ok()) << model.status();
}

TEST(Functional, CallsOfOneLayerShareItsVariables) {
  const Symbol left = Input{.shape = {4}, .name = "left"};
  const Symbol right = Input{.shape = {4}, .name = "right"};
  const Layer shared = Dense{.units = 3};
  const Symbol both = Concatenate{}({shared(left), shared(right)});
  const Model model = Functional({left, right}, Dense{.units = 1, .name = "out"}(both));
  ASSERT_TRUE(model.status().ok()) << model.status();
  // The layer "dense" has 4·3 + 3 parameters, and "out" has 6 + 1.
  EXPECT_NE(SummaryOf(model).find("Parameters: 22\n"), std::string::npos) << SummaryOf(model);
}

TEST(Functional, LayersHaveSeveralInputsAndOutputs) {
  const Symbol words = Input{.shape = {6, 2}};
  const Symbol encoded = LSTM{.units = 3, .return_sequences = true, .return_state = true}(words);
  // Keras' call(sequences, initial_state) takes two states.
  const Symbol decoded =
      LSTM{.units = 3, .return_sequences = true}({words, encoded.Output(1), encoded.Output(2)});
  const Symbol attended = Attention{}({decoded, encoded});
  const Symbol heads = MultiHeadAttention{.num_heads = 2, .key_dim = 4}({attended, encoded});
  const Model model = Functional(words, {heads, decoded});
  EXPECT_TRUE(model.status().ok()) << model.status();
}

TEST(Functional, ModelsAreLayers) {
  const Model block = Sequential({Input{.shape = {4}}, Dense{.units = 4}}, "block");
  const Symbol x = Input{.shape = {4}};
  const Model model = Functional(x, block(block(x)), "outer");
  ASSERT_TRUE(model.status().ok()) << model.status();
  EXPECT_NE(SummaryOf(model).find("Parameters: 20\n"), std::string::npos) << SummaryOf(model);
  const Model copy = block;
  const Layer shared = block;
  EXPECT_NE(SummaryOf(Functional(x, shared(copy(x)))).find("Parameters: 20\n"), std::string::npos);
  EXPECT_NE(SummaryOf(Functional(x, block.Clone()(block(x)))).find("Parameters: 40\n"),
            std::string::npos);
}

TEST(Functional, FunctionalModelsAreLayersAtItsOutputs) {
  const Symbol a = Input{.shape = {4}};
  const Symbol h = Dense{.units = 4}(a);
  const Model block = Functional(a, {h, Dense{.units = 3}(h)}, "block");
  const Symbol x = Input{.shape = {4}};
  const Symbol first = block(x);
  const Symbol second = block(first);
  for (const Symbol& end : {first, second, first.Output(1), second.Output(1)}) {
    const Model model = Functional(x, end);
    ASSERT_TRUE(model.status().ok()) << model.status();
    const Model again = Functional(x, {end, Dense{.units = 1}(second)});
    ASSERT_TRUE(again.status().ok()) << again.status();
  }
}

// If a Dense variable could be called, its calls would seem to share the layer's variables.
template <typename L>
concept Callable = requires(L layer, Symbol x) { layer(x); };
template <typename L>
concept CallableOnce = requires(L&& layer, Symbol x) { std::move(layer)(x); };
static_assert(!Callable<Dense> && !Callable<const LSTM> && CallableOnce<Dense>);
static_assert(Callable<Layer> && Callable<Model>);
// Each conversion of an Input would create another input.
static_assert(!std::is_constructible_v<Symbols, Input> && std::is_constructible_v<Symbols, Symbol>);

TEST(Functional, ItsErrorsSayWhatToChange) {
  const Symbol a = Input{.shape = {4}, .name = "a"};
  const Symbol b = Input{.shape = {4}, .name = "b"};
  const Symbol sum = Add{}({a, b});
  EXPECT_EQ(Functional(a, sum).status().message(),
            "an output depends on the input b, which is not among the inputs of the model; add it");
  EXPECT_EQ(Functional(sum, sum, "m").status().message(),
            "an input of model m is the output of a layer (Add); expected a value made from an "
            "Input");
  const Symbol twice = Dense{.units = 1, .name = "d"}(Dense{.units = 1, .name = "d"}(a));
  EXPECT_EQ(Functional(a, twice).status().message(),
            "two layers of the model are called \"d\"; give each its own name");
  EXPECT_EQ(Functional(a, Softmax{.name = "s"}({a, a})).status().message(),
            "layer s (Softmax): a call takes at most 1 input, got 2");
  EXPECT_FALSE(Functional(a, Layer()(a)).status().ok());
  const Status unfit = Functional({a, b}, Dot{.axes = {1, 2}}({a, b})).status();
  EXPECT_FALSE(unfit.ok());
}

TEST(Functional, ADeepModelNeedsNoDeepStack) {
  const Symbol x = Input{.shape = {2}};
  Symbol y = x;
  for (int i = 0; i < 3000; ++i) y = Activation{.activation = "relu"}(y);
  const Model model = Functional(x, y);
  EXPECT_TRUE(model.status().ok()) << model.status();
}

TEST(Model, ItsLayersCanHaveADTypePolicy) {
  const Model model = Sequential({Input{.shape = {2}}, Dense{.units = 1, .name = "body"}});
  const Result<std::string> json = model.WithDTypePolicy("mixed_bfloat16").ToJson();
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_NE(json->find("\"mixed_bfloat16\""), std::string::npos) << *json;
  EXPECT_EQ(model.WithDTypePolicy("bfloat16").status().message(),
            "model sequential: expected the dtype policy float32, mixed_bfloat16 or mixed_float16, "
            "got \"bfloat16\"");
  EXPECT_EQ(model.WithDTypePolicy("float32").WithDTypePolicy("float32").status().message(),
            "model sequential: the dtype policy float32 would change no layer, because each has a "
            "policy already");
}

TEST(Model, SomeOfItsLayersCanBeFrozen) {
  const Model model = Sequential({Input{.shape = {2}}, Dense{.units = 1, .name = "body"}});
  EXPECT_NE(SummaryOf(model.Frozen({"bo*"})).find("(frozen)"), std::string::npos);
  EXPECT_NE(SummaryOf(model.Frozen({"body/b*"})).find("(frozen: bias)"), std::string::npos);
  EXPECT_FALSE(model.Frozen({"nothing"}).status().ok());
  EXPECT_EQ(model.Frozen({"body/bia"}).status().message(),
            "model.frozen: \"body/bia\" matches no layer and no variable; did you mean "
            "\"body/bias\"?");
}

TEST(Model, SomeOfItsLayersCanBeRecomputed) {
  const Model model = Sequential({Input{.shape = {2}}, Dense{.units = 1, .name = "body"}});
  EXPECT_TRUE(model.Recomputed({"bo*"}).status().ok());
  EXPECT_EQ(model.Recomputed({"bode"}).status().message(),
            "model.recompute: \"bode\" matches no layer; did you mean \"body\"?");
}

TEST(Model, CanBeUsedAfterAMove) {
  Model first = Sequential({Input{.shape = {2}}, Dense{.units = 1}}, "m");
  const Model second = std::move(first);
  EXPECT_EQ(first.name(), "m");  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(first.status().ok());
}

TEST(Model, ReadsWhatItWrites) {
  const Model model = Sequential({Input{.shape = {3}}, Dense{.units = 2}}, "small");
  const std::string path = testing::TempDir() + "/small.json";
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(model.ToJson().value().c_str(), file);
  std::fclose(file);
  const Result<Model> read = Model::Load(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(SummaryOf(*read), SummaryOf(model));
  EXPECT_EQ(Model().ToJson().status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::api
