#include "runtime/model/dtype_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/yaml.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/build.h"
#include "runtime/model/keras.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/embedding.h"
#include "runtime/model/layers/merge.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/wrappers.h"

namespace tfjob::model {
namespace {

constexpr DType kF32 = DType::kFloat32;
constexpr DType kBF16 = DType::kBFloat16;
constexpr auto kMixed = DTypePolicy::kMixedBFloat16;

StatusOr<Model> ReadYamlLayers(const std::string& text) {
  const auto documents = ParseYaml(text, "layers");
  EXPECT_TRUE(documents.ok()) << documents.status();
  return ReadLayers(JsonField((*documents)[0], "layers"));
}

std::string ReadError(const std::string& text) {
  const StatusOr<Model> model = ReadYamlLayers(text);
  return model.ok() ? "accepted" : std::string(Message(model.status()));
}

BuiltGraph Training(const Model& model, std::vector<TensorType> features) {
  StatusOr<BuiltGraph> built = Build(
      model,
      {.mode = Mode::kTrain,
       .batch_size = 4,
       .features = std::move(features),
       .objectives = {{.loss = {.kind = LossKind::kMeanSquaredError}, .labels = {kF32, {3}}}}});
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// Returns the dtype of the first output of each node with this op.
std::vector<DType> TypesOf(const graph::Graph& graph, const std::string& op) {
  std::vector<DType> types;
  for (const graph::Node& node : graph.nodes()) {
    if (node.op == op) types.push_back(node.outputs[0].dtype);
  }
  return types;
}

TEST(DTypePolicy, LayersComputeInItsTypeAndKeepTheirVariablesInFloat32) {
  Model model = Sequential("m", {{.name = "dense", .config = layers::Dense{.units = 5}},
                                 {.name = "out", .config = layers::Dense{.units = 3}}});
  ASSERT_TRUE(SetPolicy(model, kMixed));
  EXPECT_EQ((*OutputTypes(model, Features({2})))[0].dtype, kBF16);
  const BuiltGraph built = Training(model, Features({2}));
  for (const VariableSpec& variable : built.variables) EXPECT_EQ(variable.dtype, kF32);
  for (const DType type : TypesOf(built.graph, "MatMul")) EXPECT_EQ(type, kBF16);
  EXPECT_GE(TypesOf(built.graph, "MatMul").size(), 5u) << "two layers and their gradients";
  for (const graph::Fetch& fetch : built.graph.fetches())
    EXPECT_EQ(built.graph.type(fetch.output).dtype, kF32) << fetch.name;
}

std::string TypeAfter(const std::string& layers, DType input, const Shape& shape) {
  const StatusOr<Model> model = ReadYamlLayers(layers);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto types = OutputTypes(*model, std::vector<TensorType>{{input, shape}});
  if (!types.ok()) return std::string(Message(types.status()));
  BuildOptions options{.mode = Mode::kPredict, .batch_size = 2, .features = {{input, shape}}};
  EXPECT_TRUE(Build(*model, options).ok()) << layers;
  return std::string(Name((*types)[0].dtype));
}

TEST(DTypePolicy, LayersThatNeedFloatsCastIntegersAndDoubles) {
  for (const DType input : {DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUInt8}) {
    for (const char* layer : {"Dense: {units: 3}", "ReLU: {max_value: 2}", "Rescaling: {scale: 2}",
                              "TimeDistributed: {layer: {Dense: {units: 2}}}",
                              "Bidirectional: {layer: {LSTM: {units: 2}}}"})
      EXPECT_EQ(TypeAfter(StrCat("[{", layer, "}]"), input, {4, 3}), "float32") << layer;
    const bool integer = input != DType::kFloat64;
    EXPECT_EQ(TypeAfter("[{Flatten: {}}]", input, {4, 3}), integer ? Name(input) : "float32");
    const std::string layer = TypeAfter("[{LayerNormalization: {}}]", input, {4, 3});
    EXPECT_EQ(layer, integer ? StrCat("layer layer_normalization (LayerNormalization) does not fit "
                                      "after the data: expected float values, got ",
                                      Name(input), "[4,3]")
                             : "float32");
  }
}

TEST(DTypePolicy, TheAverageOfIntegersIsAFloat) {
  const TensorType ids{DType::kInt32, {2}}, pixels{DType::kUInt8, {2}};
  const Layer average{.name = "average", .config = layers::Average{}};
  const auto type = [&](const TensorType& in) {
    return (*TypesAfterLayer(average, average.config, std::vector{in, in}))[0].dtype;
  };
  EXPECT_EQ(type(ids), kF32);
  EXPECT_EQ(type(pixels), DType::kUInt8) << "there is no operation, because Keras overflows";
}

TEST(DTypePolicy, NormalizationsComputeInFloat32) {
  Model model = Sequential("m", {{.name = "dense", .config = layers::Dense{.units = 3}},
                                 {.name = "norm", .config = layers::BatchNormalization{}}});
  ASSERT_TRUE(SetPolicy(model, kMixed));
  EXPECT_EQ((*OutputTypes(model, Features({2})))[0].dtype, kBF16);
  const BuiltGraph built = Training(model, Features({2}));
  for (const DType type : TypesOf(built.graph, "Rsqrt")) EXPECT_EQ(type, kF32);
  int assigned = 0;
  for (const Contribution& contribution : built.contributions) {
    if (contribution.change != Change::kAssign) continue;
    ++assigned;
    EXPECT_EQ(built.graph.type(built.graph.FindFetch(contribution.fetch)->output).dtype, kF32);
  }
  EXPECT_EQ(assigned, 2);
}

// The gradient is by rows only if there is no Cast between the table and the Gather.
TEST(DTypePolicy, EmbeddingsKeepTheRowsOfTheirGradient) {
  Model model = Sequential(
      "m", {{.name = "table", .config = layers::Embedding{.input_dim = 9, .output_dim = 3}},
            {.name = "out", .config = layers::Dense{.units = 3}}});
  ASSERT_TRUE(SetPolicy(model, kMixed));
  const auto built = Build(
      model,
      {.mode = Mode::kTrain,
       .batch_size = 4,
       .features = {{DType::kInt32, {2}}},
       .objectives = {{.loss = {.kind = LossKind::kMeanSquaredError}, .labels = {kF32, {2, 3}}}},
       .gradient_rows = true});
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->contributions.back().variable, "table/embeddings");
  EXPECT_EQ(built->contributions.back().change, Change::kGradientRows);
}

TEST(DTypePolicy, LayersOfFloat32CastTheirInputs) {
  const auto model = ReadYamlLayers(
      "[{Dense: {units: 4, dtype: mixed_float16}}, {Dense: {units: 3, dtype: float32}}]");
  ASSERT_TRUE(model.ok()) << model.status();
  const auto types = CallTypes(*model, Features({2}));
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_EQ((*types)[0][0].dtype, DType::kFloat16);
  EXPECT_EQ((*types)[1][0].dtype, kF32);
}

TEST(DTypePolicy, IsSetOnlyForLayersThatNameNone) {
  auto model = ReadYamlLayers(
      "[{Dense: {units: 4}}, {TimeDistributed: {layer: {Dense: {units: 4}}}},"
      " {Dense: {units: 3, dtype: float32}}]");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(SetPolicy(*model, kMixed));
  EXPECT_EQ(model->layers[0].policy, kMixed);
  const auto* each = model->layers[1].config.As<layers::TimeDistributed>();
  EXPECT_EQ(each->layer->policy, kMixed);
  EXPECT_EQ(model->layers[2].policy, DTypePolicy::kFloat32);
  EXPECT_TRUE(HasPolicy(*model, kMixed));
  EXPECT_FALSE(SetPolicy(*model, DTypePolicy::kMixedFloat16)) << "all have one";
  EXPECT_FALSE(HasPolicy(*model, DTypePolicy::kMixedFloat16));
}

TEST(DTypePolicy, IsReadInEveryFormOfKerasAndWrittenInThatOfKeras3) {
  for (const char* dtype :
       {"mixed_bfloat16",
        "{module: keras, class_name: DTypePolicy, config: {name: mixed_bfloat16}}",
        "{module: keras.mixed_precision, class_name: Policy, config: {name: mixed_bfloat16}}",
        "{class_name: FloatDTypePolicy, config: {name: mixed_bfloat16}}"}) {
    const auto model = ReadYamlLayers(StrCat("[{Dense: {units: 4, dtype: ", dtype, "}}]"));
    ASSERT_TRUE(model.ok()) << dtype << ": " << model.status();
    const Json json = WriteKerasJson(*model);
    const Json expected = {{"module", "keras"},
                           {"class_name", "DTypePolicy"},
                           {"config", {{"name", "mixed_bfloat16"}}},
                           {"registered_name", nullptr}};
    EXPECT_EQ(json["config"]["layers"][0]["config"]["dtype"], expected) << dtype;
    EXPECT_EQ(json["config"]["dtype"], expected) << "all layers share it";
    const auto again = ReadKerasJson(json.dump(), "written");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->layers[0].policy, kMixed);
  }
}

TEST(DTypePolicy, TheModelHasAPolicyOnlyIfItsLayersShareIt) {
  const auto model = ReadYamlLayers(
      "[{Dense: {units: 4, dtype: mixed_bfloat16}}, {Dense: {units: 3, dtype: float32}}]");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(WriteKerasJson(*model)["config"]["dtype"]["config"]["name"], "float32");
}

TEST(DTypePolicy, OthersAreRefused) {
  EXPECT_EQ(ReadError("[{Dense: {units: 4, dtype: bfloat16}}]"),
            "layer dense (Dense): layers[0].Dense.dtype: dtype \"bfloat16\" is not supported: the "
            "variables would be bfloat16; use mixed_bfloat16, which keeps them in float32");
  EXPECT_EQ(ReadError("[{Dense: {units: 4, dtype: float64}}]"),
            "layer dense (Dense): layers[0].Dense.dtype: dtype \"float64\" is not supported; only "
            "float32, mixed_bfloat16 and mixed_float16 are");
  EXPECT_NE(ReadError("[{Dense: {units: 4, dtype: {class_name: QuantizedDTypePolicy, config: "
                      "{mode: int8, source_name: float32}}}}]")
                .find("is not supported"),
            std::string::npos);
}

TEST(DTypePolicy, OfAWrapperIsThatOfTheLayerInIt) {
  const auto model =
      ReadYamlLayers("[{Bidirectional: {dtype: mixed_bfloat16, layer: {LSTM: {units: 4}}}}]");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->layers[0].config.As<layers::Bidirectional>()->layer->policy, kMixed);
  EXPECT_EQ(ReadError("[{Bidirectional: {dtype: mixed_bfloat16, layer: "
                      "{LSTM: {units: 4, dtype: float32}}}}]"),
            "layer bidirectional (Bidirectional): dtype: its policy is mixed_bfloat16, but that of "
            "layer lstm (LSTM) in it is float32; give both the same one");
}

}  // namespace
}  // namespace tfjob::model
