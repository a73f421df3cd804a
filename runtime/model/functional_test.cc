#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/model/functional_json.h"
#include "runtime/model/layers/activations.h"

namespace tfjob::model {
namespace {

// Returns a model with two inputs that share a layer, followed by a nested model, and with two
// outputs.
Json Towers() {
  const Json inner = {
      {"class_name", "Sequential"},
      {"config",
       {{"name", "inner"},
        {"layers",
         {{{"class_name", "InputLayer"},
           {"config", {{"name", "i"}, {"batch_shape", {nullptr, 3}}}}},
          {{"class_name", "Dense"}, {"config", {{"name", "deep"}, {"units", 3}}}}}}}}};
  Json nested = inner;
  nested["name"] = "inner";
  nested["inbound_nodes"] = List(NodeJson(List(Tensor3("norm"))));
  return Functional(
      "towers",
      // Layers and calls have different orders: Keras writes layers in the order in which they were
      // created.
      {Input("a", 4), LayerJson("Dense", "second", {{"units", 2}}, {List(Tensor3("product"))}),
       Input("b", 4),
       LayerJson("Dense", "shared", {{"units", 3}}, {List(Tensor3("a")), List(Tensor3("b"))}),
       LayerJson("Add", "sum", Json::object(),
                 {List(List(Tensor3("shared", 0), Tensor3("shared", 1)))}),
       LayerJson("BatchNormalization", "norm", Json::object(), {List(Tensor3("sum"))}), nested,
       LayerJson("Multiply", "product", Json::object(),
                 {List(List(Tensor3("norm"), Tensor3("inner")))}),
       LayerJson("Dense", "first", {{"units", 1}}, {List(Tensor3("product"))})},
      {{"a", 0, 0}, {"b", 0, 0}}, {{"first", 0, 0}, {"second", 0, 0}});
}

TEST(Functional, ReadsSharedLayersNestedModelsAndSeveralInputsAndOutputs) {
  const StatusOr<Model> model = Read(Towers());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(InputNames(*model), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(OutputNames(*model), (std::vector<std::string>{"first", "second"}));
  const auto outputs = OutputTypes(*model, TwoInputs());
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].ToString(), "float32[1]");
  EXPECT_EQ((*outputs)[1].ToString(), "float32[2]");
  std::string names;
  const auto variables = Variables(*model, TwoInputs());
  for (const VariableSpec& variable : *variables)
    names += variable.name + variable.shape.ToString() + (variable.trainable ? " " : "* ");
  EXPECT_EQ(names,
            "shared/kernel[4,3] shared/bias[3] norm/gamma[3] norm/beta[3] norm/moving_mean[3]* "
            "norm/moving_variance[3]* inner/deep/kernel[3,3] inner/deep/bias[3] second/kernel[3,2] "
            "second/bias[2] first/kernel[3,1] first/bias[1] ");
}

// A shared layer with a BatchNormalization: the layer itself, a wrapper, or a nested model, whose
// BatchNormalization may be in a wrapper.
TEST(Functional, ASharedLayerIsCalledInTheOrderOfKeras) {
  const auto input = [](const std::string& name) {
    Json layer = Input(name, 3);
    layer["config"]["batch_shape"] = {nullptr, 2, 3};
    return layer;
  };
  const Json normalization = {{"class_name", "BatchNormalization"}, {"config", {{"name", "n"}}}};
  const Json each = {{"class_name", "TimeDistributed"},
                     {"config", {{"name", "t"}, {"layer", normalization}}}};
  const auto nested = [&](const Json& inner) {
    return Json{{"class_name", "Sequential"},
                {"config", {{"name", "norm"}, {"layers", List(input("i"), inner)}}}};
  };
  for (Json norm : {normalization, each, nested(normalization), nested(each)}) {
    SCOPED_TRACE(PrintJson(norm));
    // The first call in the file is an output itself, so Keras makes it last.
    const Json calls = LayerJson("", "norm", {}, {List(Tensor3("x")), List(Tensor3("before"))});
    norm["name"] = norm["config"]["name"] = "norm";
    norm["inbound_nodes"] = calls["inbound_nodes"];
    const Json shared = Functional(
        "shared",
        {input("x"), norm, LayerJson("ReLU", "before", Json::object(), {List(Tensor3("x"))}),
         LayerJson("ReLU", "after", Json::object(), {List(Tensor3("norm", 1))})},
        {{"x", 0, 0}}, {{"norm", 0, 0}, {"after", 0, 0}});
    const StatusOr<Model> model = Read(shared);
    ASSERT_TRUE(model.ok()) << model.status();
    std::string inputs;
    for (const Call& call : model->calls) {
      if (model->layers[static_cast<size_t>(call.layer)].name != "norm") continue;
      inputs += LayerOf(*model, call.inputs[0]).name + " ";
    }
    EXPECT_EQ(inputs, "before x ");
    EXPECT_EQ(OutputNames(*model), (std::vector<std::string>{"norm", "after"}));
  }
}

TEST(Functional, AModelThatIsNotTrainableTrainsNoLayer) {
  Json towers = Towers();
  towers["config"]["trainable"] = false;
  towers["config"]["layers"][3]["config"]["trainable"] = true;
  const StatusOr<Model> model = Read(towers);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto variables = Variables(*model, TwoInputs());
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_TRUE(std::ranges::none_of(*variables, &VariableSpec::trainable));
}

TEST(Functional, IsWrittenAsItWasRead) {
  const StatusOr<Model> model = Read(Towers());
  ASSERT_TRUE(model.ok()) << model.status();
  const Json written = WriteKerasJson(*model);
  const StatusOr<Model> again = Read(written);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(WriteKerasJson(*again), written);
  EXPECT_EQ(*Summary(*again, TwoInputs()), *Summary(*model, TwoInputs()));
  const Json& sum = written["config"]["layers"][4];
  EXPECT_EQ(sum["inbound_nodes"][0]["args"][0][1]["config"]["keras_history"],
            (Json{"shared", 1, 0}));
}

TEST(Functional, ReadsTheCallsOfTfKeras2) {
  Json towers =
      Functional("towers",
                 {Input("a", 4), Input("b", 4), LayerJson("Dense", "shared", {{"units", 3}}, {}),
                  LayerJson("Add", "sum", Json::object(), {})},
                 {{"a", 0, 0}, {"b", 0, 0}}, {"sum", 0, 0});
  Json& layers = towers["config"]["layers"];
  const Json none = Json::object();
  layers[2]["inbound_nodes"] = List(List(List("a", 0, 0, none)), List(List("b", 0, 0, none)));
  layers[3]["inbound_nodes"] = List(List(List("shared", 0, 0, none), List("shared", 1, 0, none)));
  const StatusOr<Model> model = Read(towers);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->calls.size(), 5u);
  EXPECT_EQ(model->outputs, (std::vector<ValueRef>{{4, 0}}));
}

// tf.keras 2 calls a nested model once when it creates the model. This call has an index, but is
// not in the file.
TEST(Functional, NumbersTheCallsOfNestedModelsAsTfKeras2Does) {
  const Json none = Json::object();
  Json nested = Functional("inner", {Input("i", 4), LayerJson("Dense", "d", {{"units", 4}}, {})},
                           {"i", 0, 0}, {"d", 0, 0});
  nested["config"]["layers"][1]["inbound_nodes"] = List(List(List("i", 0, 0, none)));
  nested["name"] = "inner";
  nested["inbound_nodes"] = List(List(List("a", 0, 0, none)));
  const auto outer = [&](int number) {
    return Functional("outer", {Input("a", 4), nested}, {{"a", 0, 0}}, {"inner", number, 0});
  };
  EXPECT_EQ(Error(outer(1)), "accepted");
  EXPECT_EQ(Error(outer(0)),
            "m.json: config.output_layers: layer inner has no call number 0: it has 1");
}

TEST(Functional, ErrorsNameTheLayerAndWhatIsWrong) {
  const auto one = [](std::vector<Json> layers, Json output) {
    layers.insert(layers.begin(), Input("a", 4));
    return Functional("m", std::move(layers), {{"a", 0, 0}}, std::move(output));
  };
  EXPECT_EQ(
      Error(one({LayerJson("Dense", "x", {{"units", 3}}, {List(Tensor3("aa"))})}, {"x", 0, 0})),
      "m.json: config.layers: there is no layer aa; did you mean \"a\"?");
  EXPECT_EQ(
      Error(one({LayerJson("Dense", "x", {{"units", 3}}, {List(Tensor3("a", 1))})}, {"x", 0, 0})),
      "m.json: config.layers: layer a has no call number 1: it has 1");
  EXPECT_EQ(Error(one({LayerJson("Dense", "x", {{"units", 3}}, {List(Tensor3("a", 0, 7))})},
                      {"x", 0, 0})),
            "m.json: layer a (InputLayer) has no output number 7: it has 1");
  EXPECT_EQ(
      Error(one({LayerJson("Dense", "x", {{"units", 3}}, {List(Tensor3("a"))})}, {"x", 0, 9})),
      "m.json: layer x (Dense) has no output number 9: it has 1");
  EXPECT_EQ(
      Error(one({LayerJson("Add", "x", Json::object(), {List(List(Tensor3("a"), Tensor3("y")))}),
                 LayerJson("Dense", "y", {{"units", 4}}, {List(Tensor3("x"))})},
                {"x", 0, 0})),
      "m.json: layer x (Add) depends on its own output, directly or through other layers");
  EXPECT_EQ(
      Error(one({LayerJson("Dense", "x", {{"units", 3}}, {List(Tensor3("a"))}),
                 LayerJson("Add", "sum", Json::object(), {List(List(Tensor3("a"), Tensor3("x")))})},
                {"sum", 0, 0})),
      "m.json: layer sum (Add) does not fit after layer a (InputLayer) and layer x (Dense): "
      "expected shapes that broadcast (each dimension equal or 1, from the last one on), got "
      "4 against 3, 0 dimensions before the last");
  EXPECT_EQ(
      Error(one({LayerJson("Add", "sum", Json::object(), {List(Tensor3("a"))})}, {"sum", 0, 0})),
      "m.json: layer sum (Add) does not fit after layer a (InputLayer): expected two inputs "
      "or more, got 1");
  EXPECT_EQ(Error(one({LayerJson("Dense", "x", {{"units", 3}}, {})}, {"x", 0, 0})),
            "m.json: config.layers[1].inbound_nodes: expected the calls of the layer, got a list");
  EXPECT_EQ(Error(Functional("m", {Input("a", 4), Input("b", 4)}, {{"a", 0, 0}}, {"a", 0, 0})),
            "m.json: config.input_layers: layer b (InputLayer) is not among them");
  for (int64_t number :
       {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(
        Error(
            one({LayerJson("Dense", "x", {{"units", 3}}, {List(Tensor3("a"))})}, {"x", number, 0})),
        StrCat("m.json: config.output_layers[1]: expected the number of a call, got ", number));
  }
  Json call = one({LayerJson("Dense", "x", {{"units", 3}}, {List(Tensor3("a"))})}, {"x", 0, 0});
  call["config"]["layers"][1]["inbound_nodes"][0]["kwargs"]["training"] = true;
  EXPECT_EQ(Error(call),
            "m.json: layer x (Dense): config.layers[1].inbound_nodes[0].kwargs.training: true is "
            "not supported as an argument of a call; only the inputs are");
}

TEST(Functional, ReadsTheArgumentsOfACallByNameAndByPosition) {
  const Json a = Tensor3("a"), b = Tensor3("b");
  const Json arguments = {{"mask", {"b", 0, 0}}};
  for (const Json& node :
       {NodeJson(List(a), {{"mask", b}}), NodeJson(List(a, b)),
        NodeJson(Json::array(), {{"mask", b}, {"inputs", a}}), List(List("a", 0, 0, arguments))}) {
    const StatusOr<Model> model = Read(SoftmaxOf(node));
    ASSERT_TRUE(model.ok()) << model.status() << PrintJson(node);
    EXPECT_EQ(model->calls[2].inputs, (std::vector<ValueRef>{{0, 0}, {1, 0}}));
    ASSERT_TRUE(model->calls[2].config);
    EXPECT_EQ(model->calls[2].config->As<layers::Softmax>()->mask, 1);
    const Json written = WriteKerasJson(*model);
    const Json& call = written["config"]["layers"][2]["inbound_nodes"][0];
    EXPECT_EQ(call["args"][0]["config"]["keras_history"], (Json{"a", 0, 0}));
    EXPECT_EQ(call["kwargs"]["mask"]["config"]["keras_history"], (Json{"b", 0, 0}));
    EXPECT_EQ(WriteKerasJson(*Read(written)), written);
  }
  EXPECT_EQ(Error(SoftmaxOf(NodeJson(List(a), {{"mask", nullptr}}))), "accepted");
}

TEST(Functional, RefusesArgumentsThatALayerDoesNotTake) {
  const Json a = Tensor3("a"), b = Tensor3("b");
  const std::string node = "m.json: layer s (Softmax): config.layers[2].inbound_nodes[0].";
  const std::string refused = " is not supported as an argument of a call; only the inputs are";
  const std::pair<Json, std::string> kCases[] = {
      {NodeJson(List(a), {{"masks", b}}), node + "kwargs.masks: an object" + refused},
      {NodeJson(List(a, b, b)), node + "args[2]: an object" + refused},
      {NodeJson(List(a, 1)), node + "args[1]: 1" + refused},
      {NodeJson(List(a), {{"training", true}}), node + "kwargs.training: true" + refused},
      {NodeJson(List(a, b), {{"mask", b}}),
       "m.json: config.layers[2].inbound_nodes[0].kwargs.mask: expected an argument that is given "
       "once, got an object"},
      {NodeJson(Json::array(), {{"mask", b}}),
       "m.json: layer s (Softmax): a call lacks its argument inputs"},
      {List(List("a", 0, 0, Json{{"mask", {"b", 0, 0}}}), List("b", 0, 0, Json::object())),
       "m.json: config.layers[2].inbound_nodes[0][1][3]: expected the arguments that the call's "
       "first input has, got an object"},
  };
  for (const auto& [given, error] : kCases) EXPECT_EQ(Error(SoftmaxOf(given)), error);
}

// Each nested model calls the model one level below it twice.
TEST(Functional, NestedModelsThatWouldTakeForeverAreRefused) {
  Json model = Functional(
      "level_0", {Input("a", 4), LayerJson("Dense", "d", {{"units", 4}}, {List(Tensor3("a"))})},
      {"a", 0, 0}, {"d", 0, 0});
  for (int level = 1; level < 30; ++level) {
    const std::string name = StrCat("level_", level - 1);
    model["name"] = name;
    model["inbound_nodes"] = List(NodeJson(List(Tensor3("a"))), NodeJson(List(Tensor3(name))));
    model = Functional(StrCat("level_", level), {Input("a", 4), model}, {"a", 0, 0}, {name, 2, 0});
  }
  EXPECT_NE(Error(model).find("model level_13 has more than 40000 calls"), std::string::npos)
      << Error(model);
}

TEST(Functional, ModelsThatAreNestedTooDeepAreRefused) {
  Json model = {
      {"class_name", "Sequential"},
      {"config", {{"name", "level_0"}, {"layers", List(Json{{"class_name", "Flatten"}})}}}};
  for (int level = 1; level < 20; ++level) {
    model = {{"class_name", "Sequential"},
             {"config", {{"name", StrCat("level_", level)}, {"layers", List(model)}}}};
  }
  EXPECT_NE(Error(model).find("nests models more than 16 levels deep"), std::string::npos)
      << Error(model);
}

// In the lists of model inputs and outputs, Keras 3 counts the calls of a nested functional model
// from 1.
TEST(Functional, NumbersTheOutputsOfNestedModelsAsKeras3Does) {
  Json nested = Functional(
      "inner", {Input("i", 4), LayerJson("Dense", "d", {{"units", 4}}, {List(Tensor3("i"))})},
      {"i", 0, 0}, {"d", 0, 0});
  nested["name"] = "inner";
  nested["inbound_nodes"] = List(NodeJson(List(Tensor3("a"))), NodeJson(List(Tensor3("inner"))));
  const auto outer = [&](int number) {
    return Functional("outer", {Input("a", 4), nested}, {{"a", 0, 0}}, {"inner", number, 0});
  };
  EXPECT_EQ(Read(outer(1))->outputs, (std::vector<ValueRef>{{1, 0}}));
  EXPECT_EQ(Error(outer(3)),
            "m.json: config.output_layers: layer inner has no call number 3: it has 2");
  const StatusOr<Model> model = Read(outer(2));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->outputs, (std::vector<ValueRef>{{2, 0}}));
  EXPECT_EQ(WriteKerasJson(*model)["config"]["output_layers"][0], (Json{"inner", 2, 0}));
}

TEST(Functional, AVariableThatIsTooLargeIsRefusedInANestedModel) {
  const Json inner = {
      {"class_name", "Sequential"},
      {"config",
       {{"name", "inner"},
        {"layers", List(Json{{"class_name", "Dense"},
                             {"config", {{"name", "wide"}, {"units", 2147483647}}}})}}}};
  const Json outer = {{"class_name", "Sequential"},
                      {"config", {{"name", "outer"}, {"layers", List(inner)}}}};
  const StatusOr<Model> model = Read(outer);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Message(Variables(*model, Features({1024})).status()),
            "layer inner (Functional) does not fit after the data: variable wide/kernel: shape "
            "[1024,2147483647] is too large: more than 2^40 elements");
}

TEST(Functional, ALayerOfTfKeras2ThatNeverTrainsIsRefused) {
  Json model =
      Functional("m", {Input("a", 4), LayerJson("BatchNormalization", "n", Json::object(), {})},
                 {"a", 0, 0}, {"n", 0, 0});
  Json& nodes = model["config"]["layers"][1]["inbound_nodes"];
  nodes = List(List(List("a", 0, 0, Json{{"training", false}})));
  EXPECT_NE(Error(model).find("training: false is not supported"), std::string::npos)
      << Error(model);
  nodes = List(NodeJson(List(Tensor3("a")), {{"training", false}}));
  EXPECT_EQ(Error(model), "accepted") << "in Keras 3, this argument changes nothing";
}

// Keras 3 writes training=True for layers whose call() has this default value. fit() and predict()
// override the value.
TEST(Functional, TheDefaultTrainingOfLayersThatPrepareImagesIsAccepted) {
  const Json size = {{"height", 2}, {"width", 2}}, factor = {{"factor", 0.5}};
  const Json factors = {{"height_factor", 0.5}, {"width_factor", 0.5}};
  const Json shear = {{"x_factor", {-0.2, 0.2}}};  // Keras writes the factor 0.2 in this form
  const std::pair<const char*, Json> kLayers[] = {
      {"Resizing", size},           {"CenterCrop", size},       {"RandomFlip", Json::object()},
      {"RandomBrightness", factor}, {"RandomContrast", factor}, {"RandomInvert", factor},
      {"RandomGrayscale", factor},  {"RandomCrop", size},       {"RandomTranslation", factors},
      {"RandomRotation", factor},   {"RandomZoom", factors},    {"RandomShear", shear}};
  for (const auto& [class_name, config] : kLayers) {
    Json model = Functional("m", {Input("a", 4), LayerJson(class_name, "p", config, {})},
                            {"a", 0, 0}, {"p", 0, 0});
    model["config"]["layers"][0]["config"]["batch_shape"] = {nullptr, 6, 5, 3};
    Json& nodes = model["config"]["layers"][1]["inbound_nodes"];
    for (const bool training : {true, false}) {
      nodes = List(NodeJson(List(Tensor3("a")), {{"training", training}}));
      EXPECT_EQ(Error(model), "accepted") << class_name << training;
    }
    nodes = List(NodeJson(List(Tensor3("a")), {{"training", 1}}));
    EXPECT_NE(Error(model).find("kwargs.training: 1 is not supported"), std::string::npos)
        << Error(model);
    nodes = List(List(List("a", 0, 0, Json{{"training", true}})));
    EXPECT_NE(Error(model).find("training: true is not supported"), std::string::npos)
        << "in tf.keras 2, the layer would always change its input: " << Error(model);
  }
}

}  // namespace
}  // namespace tfjob::model
