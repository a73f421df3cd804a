#include "runtime/model/keras.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/yaml.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/noise.h"

namespace tfjob::model {
namespace {

using layers::Dense;
using layers::Dropout;

// The output of model.to_json() in Keras 3.15 for
//   Sequential([Input((28, 28)), Flatten(), Dense(128, activation="relu"), Dropout(0.2),
//               Dense(10, kernel_initializer=TruncatedNormal(stddev=0.1)), ReLU(),
//               Activation("tanh"), Softmax(), Reshape((5, 2))])
// clang-format off
const char* const kKeras3 =
    R"json({"module": "keras", "class_name": "Sequential", "config": {"name": "sequential", "trainable": true, )json"
    R"json("dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered)json"
    R"json(_name": null}, "layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_s)json"
    R"json(hape": [null, 28, 28], "dtype": "float32", "sparse": false, "ragged": false, "name": "input_layer", )json"
    R"json("optional": false}, "registered_name": null}, {"module": "keras.layers", "class_name": "Flatten", "c)json"
    R"json(onfig": {"name": "flatten", "trainable": true, "dtype": {"module": "keras", "class_name": "DTypePoli)json"
    R"json(cy", "config": {"name": "float32"}, "registered_name": null}, "data_format": "channels_last"}, "regi)json"
    R"json(stered_name": null, "build_config": {"input_shape": [null, 28, 28]}}, {"module": "keras.layers", "cl)json"
    R"json(ass_name": "Dense", "config": {"name": "dense", "trainable": true, "dtype": {"module": "keras", "cla)json"
    R"json(ss_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null}, "units": 128, "act)json"
    R"json(ivation": "relu", "use_bias": true, "kernel_initializer": {"module": "keras.initializers", "class_na)json"
    R"json(me": "GlorotUniform", "config": {"seed": null, "input_axes": null, "output_axes": null}, "registered)json"
    R"json(_name": null}, "bias_initializer": {"module": "keras.initializers", "class_name": "Zeros", "config":)json"
    R"json( {}, "registered_name": null}, "kernel_regularizer": null, "bias_regularizer": null, "kernel_constra)json"
    R"json(int": null, "bias_constraint": null, "quantization_config": null}, "registered_name": null, "build_c)json"
    R"json(onfig": {"input_shape": [null, 784]}}, {"module": "keras.layers", "class_name": "Dropout", "config":)json"
    R"json( {"name": "dropout", "trainable": true, "dtype": {"module": "keras", "class_name": "DTypePolicy", "c)json"
    R"json(onfig": {"name": "float32"}, "registered_name": null}, "rate": 0.2, "seed": null, "noise_shape": nul)json"
    R"json(l}, "registered_name": null}, {"module": "keras.layers", "class_name": "Dense", "config": {"name": ")json"
    R"json(dense_1", "trainable": true, "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"n)json"
    R"json(ame": "float32"}, "registered_name": null}, "units": 10, "activation": "linear", "use_bias": true, ")json"
    R"json(kernel_initializer": {"module": "keras.initializers", "class_name": "TruncatedNormal", "config": {"s)json"
    R"json(eed": null, "mean": 0.0, "stddev": 0.1}, "registered_name": null}, "bias_initializer": {"module": "k)json"
    R"json(eras.initializers", "class_name": "Zeros", "config": {}, "registered_name": null}, "kernel_regulariz)json"
    R"json(er": null, "bias_regularizer": null, "kernel_constraint": null, "bias_constraint": null, "quantizati)json"
    R"json(on_config": null}, "registered_name": null, "build_config": {"input_shape": [null, 128]}}, {"module")json"
    R"json(: "keras.layers", "class_name": "ReLU", "config": {"name": "re_lu", "trainable": true, "dtype": {"mo)json"
    R"json(dule": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null})json"
    R"json(, "max_value": null, "negative_slope": 0.0, "threshold": 0.0}, "registered_name": null}, {"module": )json"
    R"json("keras.layers", "class_name": "Activation", "config": {"name": "activation", "trainable": true, "dty)json"
    R"json(pe": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_nam)json"
    R"json(e": null}, "activation": "tanh"}, "registered_name": null}, {"module": "keras.layers", "class_name":)json"
    R"json( "Softmax", "config": {"name": "softmax", "trainable": true, "dtype": {"module": "keras", "class_nam)json"
    R"json(e": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null}, "axis": -1}, "registered)json"
    R"json(_name": null}, {"module": "keras.layers", "class_name": "Reshape", "config": {"name": "reshape", "tr)json"
    R"json(ainable": true, "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float3)json"
    R"json(2"}, "registered_name": null}, "target_shape": [5, 2]}, "registered_name": null}], "build_input_shap)json"
    R"json(e": [null, 28, 28]}, "registered_name": null, "build_config": {"input_shape": [null, 28, 28]}, "comp)json"
    R"json(ile_config": {}})json";
// clang-format on

// A model in the form of tf.keras 2.
constexpr char kKeras2[] = R"({
  "class_name": "Sequential",
  "config": {
    "name": "sequential",
    "layers": [
      {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 28, 28], "dtype": "float32", "sparse": false,
                                              "ragged": false, "name": "flatten_input"}},
      {"class_name": "Flatten", "config": {"name": "flatten", "trainable": true,
                                           "batch_input_shape": [null, 28, 28], "dtype": "float32",
                                           "data_format": "channels_last"}},
      {"class_name": "Dense", "config": {
        "name": "dense", "trainable": false, "dtype": "float32", "units": 128, "activation": "relu", "use_bias": true,
        "kernel_initializer": {"class_name": "GlorotUniform", "config": {"seed": null}},
        "bias_initializer": {"class_name": "Zeros", "config": {}}, "kernel_regularizer": null,
        "bias_regularizer": null, "activity_regularizer": null, "kernel_constraint": null, "bias_constraint": null}},
      {"class_name": "Dropout", "config": {"name": "dropout", "trainable": true, "dtype": "float32", "rate": 0.2,
                                           "noise_shape": null, "seed": null}},
      {"class_name": "Dense", "config": {"name": "dense_1", "units": 10, "activation": "softmax"}}
    ]
  },
  "keras_version": "2.8.0",
  "backend": "tensorflow"
})";

StatusOr<Model> FromYaml(const std::string& text) {
  ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYaml(text, "test"));
  return ReadLayers(JsonField(documents[0], "layers"));
}

std::string Error(const std::string& yaml) {
  const StatusOr<Model> model = FromYaml(yaml);
  return model.ok() ? "accepted" : std::string(Message(model.status()));
}

std::vector<std::string> LayerNames(const Model& model) {
  std::vector<std::string> names;
  for (const Layer& layer : model.layers) names.push_back(layer.name);
  return names;
}

std::string VariableNames(const Model& model, const Shape& features) {
  const StatusOr<std::vector<VariableSpec>> variables = Variables(model, Features(features));
  EXPECT_TRUE(variables.ok()) << variables.status();
  std::string text;
  for (const VariableSpec& variable : *variables)
    text += variable.name + variable.shape.ToString() + " ";
  return text;
}

TEST(KerasJson, ReadsWhatKeras3Writes) {
  const StatusOr<Model> model = ReadKerasJson(kKeras3, "model.json");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(LayerNames(*model),
            (std::vector<std::string>{"input_layer", "flatten", "dense", "dropout", "dense_1",
                                      "re_lu", "activation", "softmax", "reshape"}));
  EXPECT_EQ(VariableNames(*model, {28, 28}),
            "dense/kernel[784,128] dense/bias[128] dense_1/kernel[128,10] "
            "dense_1/bias[10] ");
  EXPECT_EQ((*OutputTypes(*model, Features({28, 28})))[0].shape, Shape({5, 2}));
  EXPECT_EQ(model->layers[2].config.As<Dense>()->activation, ActivationKind::kRelu);
  EXPECT_EQ(model->layers[3].config.As<Dropout>()->rate, 0.2);
  EXPECT_EQ(model->layers[4].config.As<Dense>()->kernel_initializer.stddev, 0.1);
  EXPECT_EQ(model->layers[4].stated_input, Shape({128}));
}

TEST(KerasJson, ReadsWhatTfKeras2Writes) {
  const StatusOr<Model> model = ReadKerasJson(kKeras2, "model.json");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(VariableNames(*model, {28, 28}),
            "dense/kernel[784,128] dense/bias[128] dense_1/kernel[128,10] "
            "dense_1/bias[10] ");
  EXPECT_FALSE((*Variables(*model, Features({28, 28})))[0].trainable) << "the layer is frozen";
  EXPECT_EQ(model->layers[4].config.As<Dense>()->activation, ActivationKind::kSoftmax);
  EXPECT_EQ(StatedInputs(*model)[0]->shape, Shape({28, 28}));
}

TEST(KerasJson, WritesAFormThatReadsAsTheSameModel) {
  for (const char* text : {kKeras3, kKeras2}) {
    const StatusOr<Model> model = ReadKerasJson(text, "model.json");
    ASSERT_TRUE(model.ok()) << model.status();
    const Json written = WriteKerasJson(*model);
    const StatusOr<Model> again = ReadKerasJson(PrintJson(written), "written");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(WriteKerasJson(*again), written);
    EXPECT_EQ(VariableNames(*again, {28, 28}), VariableNames(*model, {28, 28}));
  }
}

// Every layer must be written with the same members as in Keras, except for members that have no
// meaning here.
TEST(KerasJson, WritesTheLayersAsKeras3Does) {
  const Json expected = *ParseJson(kKeras3, "k");
  const Json written = WriteKerasJson(*ReadKerasJson(kKeras3, "k"));
  for (size_t i = 0; i < expected["config"]["layers"].size(); ++i) {
    Json layer = expected["config"]["layers"][i];
    layer["config"].erase("optional");
    layer["config"].erase("quantization_config");
    if (layer["config"].contains("kernel_initializer")) {
      layer["config"]["kernel_initializer"]["config"].erase("input_axes");
      layer["config"]["kernel_initializer"]["config"].erase("output_axes");
    }
    EXPECT_EQ(written["config"]["layers"][i], layer) << i;
  }
  EXPECT_EQ(written["config"]["build_input_shape"], expected["config"]["build_input_shape"]);
}

// Keras raises an error if these layers are created with the argument `trainable`.
TEST(KerasJson, LeavesOutTrainableWhereKerasDoesNotTakeIt) {
  const StatusOr<Model> model = FromYaml(R"(
- InputLayer: {batch_shape: [null, 4]}
- Rescaling: {scale: 2}
- Discretization: {bin_boundaries: [0.5, 1]}
)");
  ASSERT_TRUE(model.ok()) << model.status();
  const Json layers = WriteKerasJson(*model)["config"]["layers"];
  EXPECT_TRUE(layers[1]["config"].contains("trainable"));
  EXPECT_FALSE(layers[2]["config"].contains("trainable"));
}

TEST(InlineLayers, ReadShortFormsAndNumberNames) {
  const StatusOr<Model> model = FromYaml(R"(
- InputLayer: {batch_shape: [null, 4, 4]}
- Flatten:
- Dense: {units: 3, activation: tanh}
- {class_name: Dense, config: {units: 2, name: mine}}
- Dropout: {rate: 0.5}
- ReLU
- Dense: {units: 2, use_bias: false, kernel_initializer: he_normal}
- Reshape: {target_shape: [2, -1]}
)");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(LayerNames(*model),
            (std::vector<std::string>{"input_layer", "flatten", "dense", "mine", "dropout", "re_lu",
                                      "dense_1", "reshape"}));
  EXPECT_EQ(VariableNames(*model, {4, 4}),
            "dense/kernel[16,3] dense/bias[3] mine/kernel[3,2] mine/bias[2] dense_1/kernel[2,2] ");
  EXPECT_EQ((*OutputTypes(*model, Features({4, 4})))[0].shape, Shape({2, 1}));
}

// tf.keras 2 computes clip(0.2 x + 0.5, 0, 1), but Keras 3 computes clip(x / 6 + 0.5, 0, 1).
TEST(KerasJson, TheHardSigmoidOfTfKeras2IsRefused) {
  std::string text = kKeras2;
  const size_t at = text.find("\"activation\": \"relu\"");
  text.replace(at, 20, "\"activation\": \"hard_sigmoid\"");
  EXPECT_EQ(std::string(Message(ReadKerasJson(text, "model.json").status())),
            "model.json: config.layers[2].config.activation: hard_sigmoid of tf.keras 2 is not "
            "supported, because Keras 3 computes another function; use sigmoid, or train with "
            "Keras 3");
  text.replace(text.find("\"hard_sigmoid\""), 14,
               "{\"class_name\": \"function\", \"config\": \"hard_sigmoid\"}");
  EXPECT_EQ(ReadKerasJson(text, "model.json").status().code(), StatusCode::kInvalidArgument);
}

// In tf.keras 2, the hard sigmoid is the default recurrent activation of ConvLSTM, and is written
// to the file.
TEST(KerasJson, TheHardSigmoidOfTfKeras2IsRefusedInRecurrentLayers) {
  const auto read = [](const std::string& layer, const std::string& version) {
    const std::string text =
        StrCat(R"({"class_name": "Sequential", "config": {"name": "m", "layers": [)", layer,
               R"("recurrent_activation": "hard_sigmoid"}}]}, "keras_version": ")", version, "\"}");
    return std::string(Message(ReadKerasJson(text, "m.json").status()));
  };
  const std::string lstm = R"({"class_name": "LSTM", "config": {"name": "l", "units": 3, )";
  const std::string conv =
      R"({"class_name": "ConvLSTM2D", "config": {"name": "l", "filters": 3, "kernel_size": [3, 3], )";
  for (const std::string& layer : {lstm, conv}) {
    EXPECT_EQ(read(layer, "2.15.0"),
              "m.json: config.layers[0].config.recurrent_activation: hard_sigmoid of tf.keras 2 is "
              "not supported, because Keras 3 computes another function; use sigmoid, or train "
              "with Keras 3");
    EXPECT_EQ(read(layer, "3.5.0"), "");
  }
}

TEST(InlineLayers, ErrorsNameLayerClassAndArgument) {
  EXPECT_EQ(Error("- Dens: {units: 3}"),
            "layers[0]: layer class Dens is not supported; did you mean \"Dense\"?");
  EXPECT_EQ(Error("- Qwerty: {filters: 3}").substr(0, 62),
            "layers[0]: layer class Qwerty is not supported; known: InputLa");
  EXPECT_EQ(Error("- Lambda: {filters: 3}").substr(0, 62),
            "layers[0]: a Lambda layer holds Python code, which is not run;");
  EXPECT_EQ(Error("- Dense: {unit: 3, units: 3}"),
            "layer dense (Dense): layers[0].Dense.unit: unknown argument; did you mean \"units\"?");
  EXPECT_EQ(Error("- Dense: {units: 0}"),
            "layer dense (Dense): layers[0].Dense.units: expected an integer of at least 1, got 0");
  EXPECT_EQ(Error("- Dense:"),
            "layer dense (Dense): layers[0].Dense.units: expected an integer of at least 1, but it "
            "is missing");
  EXPECT_EQ(Error("- Dense: {units: 3, activation: rleu}"),
            "layer dense (Dense): layers[0].Dense.activation: activation rleu is not supported; "
            "did you mean \"relu\"?");
  EXPECT_EQ(Error("- Dense: {units: 3, kernel_regularizer: {class_name: L2, config: {l1: 0.1}}}"),
            "layer dense (Dense): regularizer L2: "
            "layers[0].Dense.kernel_regularizer.config.l1: unknown argument; "
            "did you mean \"l2\"?");
  EXPECT_EQ(Error("- Dense: {units: 3, kernel_initializer: glrot_uniform}"),
            "layer dense (Dense): layers[0].Dense.kernel_initializer: initializer glrot_uniform is "
            "not supported; did "
            "you mean \"glorot_uniform\"?");
  EXPECT_EQ(Error("- ReLU: {max_value: -6}"),
            "layer re_lu (ReLU): layers[0].ReLU.max_value: expected a number of at least 0, got "
            "-6");
  EXPECT_EQ(Error("- Dropout: {rate: 1}"),
            "layer dropout (Dropout): layers[0].Dropout.rate: expected a number in [0, 1), got 1");
  EXPECT_EQ(Error("- Dense: {units: 1, dtype: float16}"),
            "layer dense (Dense): layers[0].Dense.dtype: dtype \"float16\" is not supported: the "
            "variables would be float16; use mixed_float16, which keeps them in float32");
  EXPECT_EQ(Error("- Reshape: {target_shape: [-1, -1]}"),
            "layer reshape (Reshape): layers[0].Reshape.target_shape: expected dimensions of at "
            "least 1, at most one of "
            "them -1, got a list");
  EXPECT_EQ(Error("- InputLayer: {batch_shape: [32, 4]}").substr(0, 84),
            "layer input_layer (InputLayer): layers[0].InputLayer.batch_shape: expected a list wh");
  EXPECT_EQ(Error("[{Dense: {units: 1, name: a}}, {Dense: {units: 1, name: a}}]"),
            "layers[1]: two layers are called \"a\"; give each its own name");
  EXPECT_EQ(Error("- Dense: {units: 1, name: a/b}").substr(0, 45),
            "layers[0].Dense.name: expected a name of lett");
  EXPECT_EQ(
      Error("- {Dense: {units: 1}, ReLU: }"),
      "layers[0]: expected a layer: a class, or {Class: {argument: value}}, got a map of 2 keys");
  EXPECT_EQ(Error("- 3"),
            "layers[0]: expected a layer: a class, or {Class: {argument: value}}, got 3");
}

TEST(KerasJson, RefusesOtherModelsAndBrokenFiles) {
  const auto error = [](const char* text) {
    return std::string(Message(ReadKerasJson(text, "m.json").status()));
  };
  EXPECT_EQ(error(R"({"class_name": "MyModel", "config": {}})"),
            "m.json: class_name: model class MyModel is not supported; only Sequential and "
            "Functional are");
  EXPECT_EQ(error("{").substr(0, 24), "m.json is not valid JSON");
  EXPECT_EQ(error("{}"), "m.json: class_name: expected a string, but it is missing");
  EXPECT_EQ(error(R"({"class_name": "Sequential", "config": {"layers": []}})"),
            "m.json: config.layers: expected a list of at least one layer, got a list");
  EXPECT_NE(error(R"({"class_name": "Sequential", "config": {"layers": [
              {"class_name": "Dense", "registered_name": "mine>Dense", "config": {"units": 1}}]}})")
                .find("config.layers[0]: layer class Dense is not supported"),
            std::string::npos);
}

std::string ShapeError(const std::string& yaml, const Shape& features) {
  const StatusOr<Model> model = FromYaml(yaml);
  EXPECT_TRUE(model.ok()) << model.status();
  return std::string(Message(OutputTypes(*model, Features(features)).status()));
}

TEST(Shapes, OutputPaddingLengthensTransposedConvolutions) {
  const auto layer = [](const std::string& arguments) {
    return StrCat("[{Conv1DTranspose: {filters: 1, ", arguments, "}}]");
  };
  const auto length = [&](const std::string& arguments) {
    return (*OutputTypes(*FromYaml(layer(arguments)), Features({4, 2})))[0].shape.dim(0);
  };
  EXPECT_EQ(length("kernel_size: 3, strides: 3"), 12);
  EXPECT_EQ(length("kernel_size: 3, strides: 3, output_padding: 1"), 13);
  EXPECT_EQ(length("kernel_size: 3, strides: 3, padding: same"), 12);
  EXPECT_EQ(length("kernel_size: 3, strides: 3, padding: same, output_padding: [0]"), 10);
  EXPECT_EQ(length("kernel_size: 2, strides: 3, padding: same, output_padding: 2"), 11);
  constexpr char kAt[] = "layer conv1d_transpose (Conv1DTranspose) does not fit after the data: ";
  EXPECT_EQ(ShapeError(layer("kernel_size: 3, strides: 2, output_padding: 2"), {4, 2}),
            StrCat(kAt,
                   "output_padding: expected numbers from 0 to the stride minus 1, got 2 with "
                   "the stride 2"));
  EXPECT_EQ(ShapeError(layer("kernel_size: 3, strides: 2, output_padding: [1, 1]"), {4, 2}),
            StrCat(kAt, "output_padding: expected one number, or 1, one per axis, got 2"));
  EXPECT_EQ(
      ShapeError(layer("kernel_size: 2, strides: 2, padding: same, output_padding: 0"), {4, 2}),
      StrCat(kAt,
             "output_padding: expected an output whose convolution has the shape [4,2] of the "
             "input, but the convolution of [6,1] has the shape [3,2]; with an even "
             "kernel_size and padding: same, use 1 or more"));
}

TEST(Shapes, ThatDoNotFitNameBothLayersAndBothShapes) {
  EXPECT_EQ(ShapeError("[{Flatten: }, {Reshape: {target_shape: [10, 10]}}]", {28, 28}),
            "layer reshape (Reshape) does not fit after layer flatten (Flatten): target_shape "
            "[10,10] does not hold the "
            "784 elements of shape [784]");
  EXPECT_EQ(ShapeError("[{InputLayer: {batch_shape: [null, 784]}}, {Dense: {units: 1}}]", {28, 28}),
            "layer input_layer (InputLayer) does not fit after the data: expected examples of "
            "shape [784], got [28,28]");
  EXPECT_EQ(ShapeError("[{InputLayer: {batch_shape: [null, 2], dtype: int64}}]", {2}),
            "layer input_layer (InputLayer) does not fit after the data: expected values of type "
            "int64, as its dtype says, got float32");
  EXPECT_EQ(ShapeError("[{Dense: {units: 3}}, {Dense: {units: 1, input_shape: [4]}}]", {2}),
            "layer dense_1 (Dense) does not fit after layer dense (Dense): expected examples of "
            "shape [4], as its input "
            "shape says, got [3]");
  EXPECT_EQ(ShapeError("[{Reshape: {target_shape: [4000000000, 4000000000, 4000000000]}}]", {4})
                .substr(0, 76),
            "layer reshape (Reshape) does not fit after the data: target_shape [400000000");
}

TEST(Shapes, AxesThatDoNotExistOrComeTwiceAreErrors) {
  EXPECT_EQ(ShapeError("[{BatchNormalization: {axis: 3}}]", {2, 4}),
            "layer batch_normalization (BatchNormalization) does not fit after the data: axis 3 is "
            "not an axis of examples of shape [2,4] (axis 0 is the batch)");
  EXPECT_EQ(ShapeError("[{BatchNormalization: {axis: 0}}]", {2, 4}).substr(47, 27),
            "does not fit after the data");
  EXPECT_EQ(
      ShapeError("[{LayerNormalization: {axis: [2, -1]}}]", {2, 4}),
      "layer layer_normalization (LayerNormalization) does not fit after the data: axis -1 is "
      "given twice");
  EXPECT_EQ(
      ShapeError("[{Permute: {dims: [2, 1]}}]", {4}),
      "layer permute (Permute) does not fit after the data: dims [2,1] does not reorder the 1 "
      "axes of shape [4]");
  EXPECT_EQ(ShapeError("[{Add: }]", {4}),
            "layer add (Add) does not fit after the data: expected two inputs or more, got 1");
}

TEST(Shapes, ThatNobodyCouldHoldAreErrors) {
  const Shape features({4});
  EXPECT_EQ(ShapeError("[{Reshape: {target_shape: [4, 1]}}, {Dense: {units: 2000000000}}, "
                       "{Flatten: }, {Dense: {units: 1}}]",
                       features),
            "");
  EXPECT_EQ(ShapeError("[{Dense: {units: 1}}]", {1 << 30, 1 << 30}),
            "the data: shape [1073741824,1073741824] is too large: more than 2^40 elements");
  const StatusOr<Model> wide =
      FromYaml("[{Dense: {units: 2000000000}}, {Dense: {units: 2000000000}}]");
  EXPECT_EQ(Message(Variables(*wide, Features(features)).status()),
            "variable dense_1/kernel: shape [2000000000,2000000000] is too large: more than 2^40 "
            "elements");
}

// Each plane of a 3D kernel, and each window of adaptive pooling, requires separate ops.
TEST(Layers, ThatWouldTakeForeverAreRefused) {
  const auto error = [](const std::string& layer, int count) {
    std::string layers;
    for (int i = 0; i < count; ++i) layers += StrCat(i == 0 ? "" : ", ", layer);
    const std::string text = StrCat(
        R"({"class_name": "Sequential", "config": {"name": "m", "layers": [)", layers, "]}}");
    return std::string(Message(ReadKerasJson(text, "m.json").status()));
  };
  const std::string conv = R"({"class_name": "Conv3D", "config": {"filters": 1, )"
                           R"("kernel_size": [1024, 1, 1], "padding": "same"}})";
  const std::string transposed = R"({"class_name": "Conv3DTranspose", "config": {"filters": 1, )"
                                 R"("kernel_size": [1024, 1, 1], "padding": "same"}})";
  const std::string pooling = R"({"class_name": "AdaptiveMaxPooling3D", "config": )"
                              R"({"output_size": [500, 500, 24]}})";
  for (const std::string& layer : {conv, transposed, pooling}) {
    EXPECT_EQ(error(layer, 39), "");
    EXPECT_TRUE(error(layer, 40).starts_with("m.json: model m has more than 40000 calls"))
        << error(layer, 40);
  }
}

TEST(Summary, ListsLayersAndParameters) {
  const StatusOr<Model> model = FromYaml("[{Flatten: }, {Dense: {units: 10}}]");
  EXPECT_EQ(*Summary(*model, Features({28, 28})),
            "Model sequential, features [28,28]\n"
            "flatten (Flatten)               [784]           0\n"
            "dense (Dense)                   [10]            7850\n"
            "Parameters: 7850\n");
}

TEST(Layers, AnRnnHasTheVariablesOfItsCells) {
  const StatusOr<Model> model = FromYaml(
      "- RNN: {cell: {StackedRNNCells: {cells: [{LSTMCell: {units: 3}}, {LSTMCell: {units: 2}},\n"
      "    {GRUCell: {units: 5, use_bias: false}}]}}, return_sequences: true}");
  ASSERT_TRUE(model.ok()) << model.status();
  std::string names;
  const auto variables = Variables(*model, Features({7, 4}));
  ASSERT_TRUE(variables.ok()) << variables.status();
  for (const VariableSpec& variable : *variables)
    names +=
        variable.name.substr(sizeof("rnn/stacked_rnn_cells")) + variable.shape.ToString() + " ";
  EXPECT_EQ(names,
            "lstm_cell/kernel[4,12] lstm_cell/recurrent_kernel[3,12] lstm_cell/bias[12] "
            "lstm_cell_1/kernel[3,8] lstm_cell_1/recurrent_kernel[2,8] lstm_cell_1/bias[8] "
            "gru_cell/kernel[2,15] gru_cell/recurrent_kernel[5,15] ");
  const Json written = WriteKerasJson(*model);
  EXPECT_EQ(WriteKerasJson(*ReadKerasJson(PrintJson(written), "again")), written);
}

TEST(Layers, CellsBelongInAnRnn) {
  const auto fit = [](const std::string& yaml) {
    return std::string(Message(OutputTypes(*FromYaml(yaml), Features({7, 4})).status()));
  };
  EXPECT_EQ(fit("- LSTMCell: {units: 3}"),
            "layer lstm_cell (LSTMCell) does not fit after the data: LSTMCell computes a single "
            "step; pass it to an RNN layer");
  EXPECT_EQ(fit("- RNN: {cell: {Dense: {units: 3}}}"),
            "layer rnn (RNN) does not fit after the data: expected a SimpleRNNCell, LSTMCell or "
            "GRUCell, or StackedRNNCells of these, got layer dense (Dense)");
}

}  // namespace
}  // namespace tfjob::model
