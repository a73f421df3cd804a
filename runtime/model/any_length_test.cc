#include "runtime/model/any_length.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/model/build.h"
#include "runtime/model/keras.h"

namespace tfjob::model {
namespace {

Json InputOf(const std::string& name, Json batch_shape, const std::string& dtype = "float32") {
  return {{"class_name", "InputLayer"},
          {"config", {{"name", name}, {"batch_shape", std::move(batch_shape)}, {"dtype", dtype}}},
          {"name", name},
          {"inbound_nodes", Json::array()}};
}

Json TensorOf(const std::string& layer) {
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"shape", {nullptr}}, {"keras_history", {layer, 0, 0}}}}};
}

// Returns a layer that is called once.
Json LayerOf(const std::string& class_name, const std::string& name, Json config, Json args,
             Json kwargs = Json::object()) {
  config["name"] = name;
  Json nodes = Json::array();
  nodes.push_back({{"args", std::move(args)}, {"kwargs", std::move(kwargs)}});
  Json layer = {{"class_name", class_name},
                {"config", std::move(config)},
                {"name", name},
                {"inbound_nodes", std::move(nodes)}};
  if (class_name == "NotEqual") layer["module"] = "keras.src.ops.numpy";
  return layer;
}

Json ArgsOf(Json first) {
  Json args = Json::array();
  args.push_back(std::move(first));
  return args;
}

Json ModelOf(std::vector<Json> layers, const std::string& output) {
  return {{"class_name", "Functional"},
          {"config",
           {{"name", "m"},
            {"layers", std::move(layers)},
            {"input_layers", {{"i", 0, 0}}},
            {"output_layers", {{output, 0, 0}}}}}};
}

StatusOr<Model> ReadJson(const Json& json) {
  return ReadKerasJson(PrintJson(json), "m.json");
}

// Returns a model with an Embedding, and a layer that receives the mask of the Embedding as an
// argument. Keras 3 writes the computation of the mask as a call of a function.
Json Masked(const std::string& class_name, Json config) {
  return ModelOf(
      {InputOf("i", {nullptr, nullptr}, "int32"),
       LayerOf("Embedding", "e", {{"input_dim", 9}, {"output_dim", 4}, {"mask_zero", true}},
               ArgsOf(TensorOf("i"))),
       LayerOf("NotEqual", "mask", Json::object(), {TensorOf("i"), 0}),
       LayerOf(class_name, "x", std::move(config), ArgsOf(TensorOf("e")),
               {{"mask", TensorOf("mask")}})},
      "x");
}

TEST(AnyLength, TheDataDecide) {
  const StatusOr<Model> model = ReadJson(
      ModelOf({InputOf("i", {nullptr, nullptr, 3}),
               LayerOf("Conv1D", "c", {{"filters", 2}, {"kernel_size", 3}}, ArgsOf(TensorOf("i")))},
              "c"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(StatedInputs(*model)[0]->shape, Shape({kAnyLength, 3}));
  for (int64_t length : {3, 10})
    EXPECT_EQ((*OutputTypes(*model, Features({length, 3})))[0].shape, Shape({length - 2, 2}));
  EXPECT_EQ(Message(OutputTypes(*model, Features({2, 3})).status()),
            "layer c (Conv1D) does not fit after layer i (InputLayer): expected a width of at "
            "least 3 for a window of 3, got 2");
  EXPECT_EQ(Message(OutputTypes(*model, Features({5, 4})).status()),
            "layer i (InputLayer) does not fit after the data: expected examples of shape "
            "[null,3], got [5,4]");
  EXPECT_FALSE(OutputTypes(*model, Features({kAnyLength, 3})).ok());
  EXPECT_EQ((*StatedCallTypes(*model))[1][0].shape, Shape({kAnyLength, 2}));
}

TEST(AnyLength, IsWrittenAsNull) {
  const StatusOr<Model> model =
      ReadJson(ModelOf({InputOf("i", {nullptr, nullptr, 3}),
                        LayerOf("Dense", "d", {{"units", 2}}, ArgsOf(TensorOf("i"))),
                        LayerOf("Flatten", "f", Json::object(), ArgsOf(TensorOf("d")))},
                       "f"));
  ASSERT_TRUE(model.ok()) << model.status();
  const Json written = WriteKerasJson(*model);
  const Json& layers = written["config"]["layers"];
  EXPECT_EQ(layers[0]["config"]["batch_shape"], (Json{nullptr, nullptr, 3}));
  EXPECT_EQ(layers[2]["inbound_nodes"][0]["args"][0]["config"]["shape"],
            (Json{nullptr, nullptr, 2}));
  EXPECT_EQ(WriteKerasJson(*ReadJson(written)), written);
}

// The Reshape layer requires 50 steps; none of the lengths that are tried is 50.
TEST(AnyLength, AModelThatFitsNoExampleIsReadAndWritten) {
  const StatusOr<Model> model = ReadJson(
      ModelOf({InputOf("i", {nullptr, nullptr}),
               LayerOf("Reshape", "r", {{"target_shape", {5, 10}}}, ArgsOf(TensorOf("i")))},
              "r"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(ExampleInputs(*model).ok());
  EXPECT_TRUE(OutputTypes(*model, Features({50})).ok());
  EXPECT_TRUE(ReadJson(WriteKerasJson(*model)).ok());
}

TEST(AnyLength, ALastAxisOfOneMayBeMissing) {
  EXPECT_EQ(TakenAs({kAnyLength, 1}, {7}), Shape({7, 1}));
  EXPECT_EQ(TakenAs({kAnyLength}, {7, 1}), Shape({7}));
  EXPECT_EQ(TakenAs({kAnyLength}, {7}), Shape({7}));
  EXPECT_EQ(TakenAs({kAnyLength, 2}, {7, 3}), Shape({7, 3}));
}

TEST(GivenMasks, AreReadAndWritten) {
  for (const std::string name : {"BatchNormalization", "GlobalAveragePooling1D"}) {
    const StatusOr<Model> model = ReadJson(Masked(name, Json::object()));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->calls[3].masks, (std::vector<ValueRef>{{2, 0}}));
    const Json written = WriteKerasJson(*model);
    EXPECT_EQ(written["config"]["layers"][3]["inbound_nodes"][0]["kwargs"]["mask"]["config"]
                     ["keras_history"],
              (Json{"mask", 0, 0}));
    EXPECT_EQ(WriteKerasJson(*ReadJson(written)), written);
    const auto built = Build(
        *model, {.mode = Mode::kPredict, .batch_size = 2, .features = {{DType::kInt32, {5}}}});
    EXPECT_TRUE(built.ok()) << built.status();
  }
}

TEST(GivenMasks, OfLayersThatTakeNoneAreRefused) {
  EXPECT_EQ(Message(ReadJson(Masked("Dense", {{"units", 2}})).status()),
            "m.json: layer x (Dense): config.layers[3].inbound_nodes[0].kwargs.mask: an object is "
            "not supported as an argument of a call; only the inputs are");
}

TEST(GivenMasks, MustFit) {
  Json json = Masked("BatchNormalization", Json::object());
  json["config"]["layers"][3]["inbound_nodes"][0]["kwargs"]["mask"] = TensorOf("i");
  EXPECT_EQ(
      Message(OutputTypes(*ReadJson(json), std::vector<TensorType>{{DType::kInt32, {5}}}).status()),
      "layer x (BatchNormalization): expected as mask a bool with the first axes of "
      "float32[5,4], got int32[5] from layer i (InputLayer)");
  json["config"]["layers"][3]["inbound_nodes"][0]["kwargs"]["mask"] = ArgsOf(nullptr);
  EXPECT_TRUE(ReadJson(json).ok());
  json["config"]["layers"][3]["inbound_nodes"][0]["kwargs"]["mask"] = {nullptr, nullptr};
  EXPECT_NE(Message(ReadJson(json).status()).find("expected as many masks as inputs"),
            std::string::npos);
}

}  // namespace
}  // namespace tfjob::model
