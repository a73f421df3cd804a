#include "runtime/model/keras/weights.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/io/hdf5_file.h"
#include "runtime/io/safetensors.h"
#include "runtime/io/zip_writer.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras/compile_config.h"
#include "runtime/model/keras/layout.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/model/keras/object_names.h"
#include "runtime/model/keras/optimizer_state.h"
#include "runtime/model/keras/write.h"
#include "runtime/model/layer_patterns.h"

namespace tfjob::keras {
namespace {

using model::VariableSpec;

std::string Path(const std::string& name) {
  return StrCat(testing::TempDir(), "/", name);
}

// A Sequential model that contains a nested model and a frozen layer.
constexpr char kModel[] = R"({"class_name": "Sequential", "config": {"name": "outer", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 3], "name": "x"}},
  {"class_name": "Dense", "config": {"units": 2, "name": "first"}},
  {"class_name": "Sequential", "config": {"name": "inner", "layers": [
    {"class_name": "Dense", "config": {"units": 2, "name": "deep", "trainable": false}},
    {"class_name": "BatchNormalization", "config": {"name": "norm"}}]}},
  {"class_name": "Dense", "config": {"units": 1, "name": "last", "use_bias": false}}]}})";

struct Some {
  model::Model model = *model::ReadKerasJson(kModel, "the model");
  std::vector<VariableSpec> variables = *model::Variables(model, model::Features({3}));
  std::vector<Tensor> values;

  // Creates a model whose variables have a different value in every element.
  Some() {
    float next = 1;
    for (const VariableSpec& variable : variables) {
      values.emplace_back(variable.dtype, variable.shape);
      for (float& value : values.back().data<float>()) value = next++;
    }
  }
  WholeModel whole() const { return {model, variables, values}; }
};

StatusOr<std::vector<std::optional<Tensor>>> Load(const std::string& path, const Some& some,
                                                  const std::vector<std::string>& skip = {}) {
  ASSIGN_OR_RETURN(const Weights weights, OpenWeights(path, some.model, some.variables));
  return ReadValues(weights, some.variables, skip);
}

void ExpectEqual(const StatusOr<std::vector<std::optional<Tensor>>>& got, const Some& some) {
  ASSERT_TRUE(got.ok()) << got.status();
  for (size_t i = 0; i < some.values.size(); ++i)
    EXPECT_TRUE(std::ranges::equal((*got)[i]->bytes(), some.values[i].bytes()))
        << some.variables[i].name;
}

TEST(Layout, GroupsAreNumberedByClassAndOrder) {
  const Some some;
  const auto groups = Groups(some.model, some.variables);
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::string text;
  for (const Group& group : *groups) {
    text += StrCat(group.path, " ", group.name, ":");
    for (const std::string& variable : group.variables) text += " " + variable;
    text += "\n";
  }
  EXPECT_EQ(text,
            "layers/input_layer x:\n"
            "layers/dense first: first/kernel first/bias\n"
            "layers/sequential inner:\n"
            "layers/sequential/layers/dense deep: inner/deep/kernel inner/deep/bias\n"
            "layers/sequential/layers/batch_normalization norm: inner/norm/gamma inner/norm/beta "
            "inner/norm/moving_mean inner/norm/moving_variance\n"
            "layers/dense_1 last: last/kernel\n");
}

// Wrappers, stacks of cells and nested models may contain each other.
TEST(Layout, GroupsOfWrappedLayers) {
  constexpr char kWrapped[] = R"({"class_name": "Sequential", "config": {"layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 2, 3, 4]}},
    {"class_name": "TimeDistributed", "config": {"name": "each", "layer":
      {"class_name": "Sequential", "config": {"name": "inner", "layers": [
        {"class_name": "Bidirectional", "config": {"name": "both", "layer":
          {"class_name": "RNN", "config": {"name": "rnn", "cell":
            {"class_name": "StackedRNNCells", "config": {"name": "stack", "cells": [
              {"class_name": "GRUCell", "config": {"name": "a", "units": 2, "use_bias": false}},
              {"class_name": "GRUCell", "config": {"name": "b", "units": 1, "use_bias": false}}
            ]}}}}}},
        {"class_name": "Dense", "config": {"name": "dense", "units": 1}}]}}}}]}})";
  const model::Model model = *model::ReadKerasJson(kWrapped, "the model");
  const auto variables = *model::Variables(model, model::Features({2, 3, 4}));
  const auto groups = Groups(model, variables);
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::string text;
  for (const Group& group : *groups) {
    if (!group.variables.empty()) text += StrCat(group.path, " ", group.variables[0], "\n");
  }
  const std::string layer = "layers/time_distributed/layer/layers/";
  EXPECT_EQ(text, StrCat(layer,
                         "bidirectional/forward_layer/cell/cells/gru_cell "
                         "each/inner/both/forward_rnn/stack/a/kernel\n",
                         layer,
                         "bidirectional/forward_layer/cell/cells/gru_cell_1 "
                         "each/inner/both/forward_rnn/stack/b/kernel\n",
                         layer,
                         "bidirectional/backward_layer/cell/cells/gru_cell "
                         "each/inner/both/backward_rnn/stack/a/kernel\n",
                         layer,
                         "bidirectional/backward_layer/cell/cells/gru_cell_1 "
                         "each/inner/both/backward_rnn/stack/b/kernel\n",
                         layer, "dense each/inner/dense/kernel\n"));
}

TEST(Layout, TheOlderFormatBeginsWithTrainableWeights) {
  const Some some;
  const std::vector<LayerWeights> layers =
      WeightsByLayer(some.model, some.variables, TrainableFlags::kPresent);
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[2].layer, "inner");
  EXPECT_EQ(layers[2].variables,
            (std::vector<std::string>{"inner/norm/gamma", "inner/norm/beta", "inner/deep/kernel",
                                      "inner/deep/bias", "inner/norm/moving_mean",
                                      "inner/norm/moving_variance"}));
}

TEST(Layout, PatternsThatFreezeLayersDoNotChangeTheOrderOfAFile) {
  const Some some;
  const auto order_in_file = [](const model::Model& model) {
    const auto variables = *model::Variables(model, model::Features({3}));
    return WeightsByLayer(model, variables, TrainableFlags::kOfFile)[2].variables;
  };
  for (const char* pattern : {"inner/norm", "inner/deep", "inner", "*"}) {
    model::Model frozen = some.model;
    ASSERT_EQ(model::Freeze(frozen, std::vector<std::string>{pattern}), OkStatus());
    EXPECT_EQ(order_in_file(frozen), order_in_file(some.model)) << pattern;
  }
  // A new file is written with the present flags.
  model::Model frozen = some.model;
  ASSERT_EQ(model::Freeze(frozen, std::vector<std::string>{"*"}), OkStatus());
  const auto variables = *model::Variables(frozen, model::Features({3}));
  EXPECT_EQ(WeightsByLayer(frozen, variables, TrainableFlags::kPresent)[2].variables[0],
            "inner/deep/kernel");
  // Files cannot freeze single variables.
  frozen = some.model;
  ASSERT_EQ(model::Freeze(frozen, std::vector<std::string>{"inner/norm/*", "*kernel"}), OkStatus());
  for (const TrainableFlags flags : {TrainableFlags::kOfFile, TrainableFlags::kPresent}) {
    const auto named = *model::Variables(frozen, model::Features({3}));
    EXPECT_EQ(WeightsByLayer(frozen, named, flags)[2].variables,
              WeightsByLayer(some.model, some.variables, flags)[2].variables);
  }
}

TEST(Weights, AreReadInPiecesFromEveryFormat) {
  const Some some;
  for (const char* format : kWrittenFormats) {
    SCOPED_TRACE(format);
    const std::string path = Path(StrCat("pieces", format));
    ASSERT_EQ(Write(path, some.whole()), OkStatus());
    std::optional<Weights> weights = *OpenWeights(path, some.model, some.variables);
    const auto opened = OpenValues(*weights, some.variables, {{"first/*"}}, {{0, 2}});
    ASSERT_TRUE(opened.ok()) << opened.status();
    weights.reset();
    EXPECT_FALSE((*opened)[0].has_value());
    EXPECT_FALSE((*opened)[3]->pieces);
    EXPECT_TRUE(std::ranges::equal((*opened)[3]->whole.bytes(), some.values[3].bytes()));
    const StoredValue& streamed = *(*opened)[2];
    ASSERT_TRUE(streamed.pieces);
    std::vector<std::byte> piece(8);
    ASSERT_EQ(streamed.pieces(4, piece), OkStatus());
    EXPECT_TRUE(std::ranges::equal(piece, some.values[2].bytes().subspan(4, 8)));
  }
}

TEST(Weights, OfAFrozenModelAreReadInEveryFormat) {
  const Some some;
  model::Model frozen = some.model;
  ASSERT_EQ(model::Freeze(frozen, std::vector<std::string>{"inner/norm"}), OkStatus());
  const auto variables = *model::Variables(frozen, model::Features({3}));
  const WholeModel wholes[] = {some.whole(), {frozen, variables, some.values}};
  for (const WholeModel& written : wholes) {
    for (const char* format : kWrittenFormats) {
      SCOPED_TRACE(format);
      const std::string path = Path(StrCat("frozen", format));
      ASSERT_EQ(Write(path, written), OkStatus());
      for (const model::Model* model : {&some.model, &std::as_const(frozen)}) {
        const auto weights = OpenWeights(path, *model, some.variables);
        ASSERT_TRUE(weights.ok()) << weights.status();
        ExpectEqual(ReadValues(*weights, some.variables, {}), some);
      }
    }
  }
}

TEST(Layout, PartsOfLayersHaveTheNamesOfKerasAttributes) {
  const model::Model model = model::Sequential(
      "m", {{.name = "rnn", .config = *[] {
               return std::make_optional(model::LayerConfig(Some().model.layers[1].config));
             }()}});
  const std::vector<VariableSpec> variables = {{.name = "rnn/lstm_cell/kernel", .shape = {1}},
                                               {.name = "rnn/lstm_cell/bias", .shape = {1}}};
  const auto groups = Groups(model, variables);
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ(groups->back().path, "layers/dense/cell");
  EXPECT_EQ(groups->back().variables.size(), 2u);
  const std::vector<VariableSpec> other = {{.name = "rnn/part/kernel", .shape = {1}}};
  EXPECT_TRUE(absl::IsUnimplemented(Groups(model, other).status()));
}

TEST(Weights, EveryFormatIsReadBackWithEqualBits) {
  const Some some;
  for (const char* format : kWrittenFormats) {
    SCOPED_TRACE(format);
    const std::string path = Path(StrCat("all", format));
    ASSERT_TRUE(Write(path, some.whole()).ok()) << Write(path, some.whole());
    const std::string first = *ReadFile(path);
    ASSERT_TRUE(Write(path, some.whole()).ok());
    EXPECT_TRUE(first == *ReadFile(path)) << "equal models give equal files";
    ExpectEqual(Load(path, some), some);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Write(Path("all.pt"), some.whole())));
}

TEST(Weights, WholeModelsAreReadBack) {
  const Some some;
  for (const char* format : {".keras", ".h5"}) {
    const std::string path = Path(StrCat("whole", format));
    ASSERT_TRUE(Write(path, some.whole()).ok());
    const StatusOr<model::Model> model = ReadModelFile(path);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(PrintJson(model::WriteKerasJson(*model)),
              PrintJson(model::WriteKerasJson(some.model)));
  }
}

TEST(Weights, NamesCountBeforeOrder) {
  const Some some;
  Some other;  // the same layers, but the names of two are exchanged
  other.model.layers[1].name = "last";
  other.model.layers[3].name = "first";
  other.variables = *model::Variables(other.model, model::Features({3}));
  for (const char* format : {".weights.h5", ".h5"}) {
    const std::string path = Path(StrCat("named", format));
    ASSERT_TRUE(Write(path, some.whole()).ok());
    const Status status = Load(path, other).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(
        Message(status).find("last/kernel is float32[2,1] there, but float32[3,2] in the model"),
        std::string_view::npos)
        << status;
  }
}

TEST(Weights, WithoutTheNamesTheOrderCounts) {
  const Some some;
  Some other;
  other.model.layers[1].name = "one";
  other.model.layers[3].name = "three";
  other.variables = *model::Variables(other.model, model::Features({3}));
  for (const char* format : {".keras", ".h5"}) {
    const std::string path = Path(StrCat("ordered", format));
    ASSERT_TRUE(Write(path, some.whole()).ok());
    ExpectEqual(Load(path, other), some);
  }
}

TEST(Weights, DifferencesAreNamed) {
  Some some;
  const std::string path = Path("named.safetensors");
  ASSERT_TRUE(Write(path, some.whole()).ok());
  Some other;
  other.model = *model::ReadKerasJson(
      [] {
        std::string text = kModel;
        const std::string head = R"("units": 1, "name": "last")";
        return text.replace(text.find(head), head.size(), R"("units": 5, "name": "last")");
      }(),
      "other");
  other.variables = *model::Variables(other.model, model::Features({3}));
  Status status = Load(path, other).status();
  EXPECT_NE(
      Message(status).find("last/kernel is float32[2,1] there, but float32[2,5] in the model"),
      std::string_view::npos)
      << status;
  const auto skipped = Load(path, other, {"last/*"});
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_FALSE(skipped->back().has_value());
  EXPECT_TRUE(skipped->front().has_value());
  EXPECT_NE(Message(Load(path, other, {"lost/*"}).status()).find("matches no variable"),
            std::string_view::npos);
  other.variables.back().name = "lasd/kernel";
  status = Load(path, other).status();
  EXPECT_NE(Message(status).find("has no weights for lasd/kernel; did you mean \"last/kernel\""),
            std::string_view::npos)
      << status;
  other.variables.pop_back();
  status = Load(path, other).status();
  EXPECT_NE(Message(status).find("has weights for last/kernel, which the model does not have"),
            std::string_view::npos)
      << status;
}

TEST(Weights, OtherFilesAreRefused) {
  const Some some;
  const auto refused = [&](const std::string& name, const std::string& bytes,
                           const std::string& expected) {
    const std::string path = Path(name);
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    const Status status = Load(path, some).status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(Message(status).find(name), std::string_view::npos) << status;
    EXPECT_NE(Message(status).find(expected), std::string_view::npos) << status;
  };
  refused("text.keras", "no archive", "is not a .keras file: it is not a ZIP archive");
  refused("cut.keras", "PK\3\4 cut off", "");
  refused("model.json", kModel, "holds no weights");
  refused("short.h5", "\x89HDF\r\n\x1a\n", "not an HDF5 file, or cut off");
  EXPECT_TRUE(absl::IsNotFound(Load(Path("none"), some).status()));
}

TEST(ObjectNames, NamesOfNestedModelsMayBeMissing) {
  const Some some;
  const auto found = MatchObjectNames(some.model, some.variables,
                                      {{"outer/first/kernel", "1"},
                                       {"first/bias", "2"},
                                       {"deep/kernel", "3"},
                                       {"inner/deep/bias", "4"},
                                       {"kernel", "5"},
                                       {"other/last/kernel", "6"}});
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"first/kernel", "1"},
                                                       {"first/bias", "2"},
                                                       {"inner/deep/kernel", "3"},
                                                       {"inner/deep/bias", "4"}}));
  const std::vector<VariableSpec> twins = {{.name = "a/d/kernel"}, {.name = "b/d/kernel"}};
  EXPECT_TRUE(MatchObjectNames(some.model, twins, {{"d/kernel", "1"}}).empty());
}

std::string Archive(const std::string& name, const std::string& member, std::string_view content) {
  const std::string path = Path(name);
  auto zip = *io::ZipWriter::Create(path);
  EXPECT_TRUE(zip->Add(member, std::span(&content, 1)).ok());
  EXPECT_TRUE(zip->Finish().ok());
  return path;
}

TEST(ModelFile, BadModelsAreNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {Archive("other.keras", "other", "x"), "is not a .keras file: it has no config.json"},
      {Archive("bad.keras", "config.json", "{"), "config.json is not valid JSON"},
      {Archive("list.keras", "config.json", "[]"), "config.json: expected an object"},
      {Archive("lambda.keras", "config.json", R"({"class_name": "Sequential", "config": {"layers":
          [{"class_name": "Lambda", "config": {"name": "l"}}]}})"),
       "a Lambda layer holds Python code, which is not run"},
  };
  for (const auto& [path, expected] : cases) {
    const Status status = ReadModelFile(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(Message(status).find(expected), std::string_view::npos) << status;
    EXPECT_NE(Message(status).find(path), std::string_view::npos) << status;
  }
  const Some some;
  const std::string weights = Path("only.weights.h5");
  ASSERT_TRUE(Write(weights, some.whole()).ok());
  EXPECT_NE(Message(ReadModelFile(weights).status()).find("has weights, but no model"),
            std::string_view::npos);
}

// Returns a state of Adam after 7 steps, in which all slot values are different.
OptimizerState StateOf(const Some& some) {
  OptimizerState state{.iterations = 7};
  float next = 100;
  for (const VariableSpec& variable : some.variables) {
    for (const char* slot : {"momentum", "velocity"}) {
      if (!variable.trainable) continue;
      Tensor tensor(variable.dtype, variable.shape);
      for (float& value : tensor.data<float>()) value = next++;
      state.slots[variable.name].emplace(slot, tensor);
    }
  }
  return state;
}

TEST(OptimizerState, IsReadFromTheFilesThatContainIt) {
  const Some some;
  const OptimizerState state = StateOf(some);
  const auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  const Json keys = {{"loss", {{"name", "mean_squared_error"}}},
                     {"loss_weight", 1.0},
                     {"optimizer", {{"name", "adam"}}}};
  const auto config = MakeCompileConfig(std::span(&keys, 1), adam, /*scales_loss=*/false);
  ASSERT_TRUE(config.has_value());
  WholeModel whole = some.whole();
  whole.compiled.emplace(CompiledModel{*config, adam, &state});
  for (const char* name : {"state.keras", "state.h5"}) {
    ASSERT_TRUE(Write(Path(name), whole).ok());
    const auto compiled = ReadCompileConfig(Path(name));
    ASSERT_TRUE(compiled.ok() && compiled->has_value()) << compiled.status();
    EXPECT_EQ((**compiled)["optimizer"]["class_name"], "Adam");
    const auto read = ReadOptimizerState(Path(name), some.model, some.variables, adam);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->iterations, 7);
    ASSERT_EQ(read->slots.size(), state.slots.size());
    for (const auto& [variable, slots] : state.slots) {
      for (const auto& [slot, tensor] : slots)
        EXPECT_TRUE(std::ranges::equal(read->slots.at(variable).at(slot).bytes(), tensor.bytes()))
            << variable << " " << slot;
    }
    ExpectEqual(Load(Path(name), some), some);
    const auto other = ReadOptimizerState(Path(name), some.model, some.variables,
                                          optimizer::Optimizer::Default(optimizer::Kind::kSgd));
    EXPECT_EQ(Message(other.status()),
              StrCat(Path(name), ": its optimizer has 12 variables, but SGD has 2 for this model"));
  }
  ASSERT_TRUE(Write(Path("none.keras"), some.whole()).ok());
  EXPECT_EQ(
      Message(ReadOptimizerState(Path("none.keras"), some.model, some.variables, adam).status()),
      StrCat(Path("none.keras"), " has no state of an optimizer; to let the optimizer start ",
             "afresh, set optimizer.name, but not model.optimizer_state, in the training file or, ",
             "in the API, use Model::Load and compile the model"));
}

TEST(OptimizerState, OfALossScaleOptimizerIsReadAndWritten) {
  const Some some;
  OptimizerState state = StateOf(some);
  state.loss_scale = {.scale = 4096, .good_steps = 12};
  const auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  const Json config = Json::object();
  WholeModel whole = some.whole();
  whole.compiled.emplace(CompiledModel{config, adam, &state});
  ASSERT_TRUE(Write(Path("scaled.keras"), whole).ok());
  const auto read = ReadOptimizerState(Path("scaled.keras"), some.model, some.variables, adam);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->iterations, 7);
  EXPECT_EQ(read->slots.size(), state.slots.size());
  ASSERT_TRUE(read->loss_scale.has_value());
  EXPECT_EQ(read->loss_scale->scale, 4096);
  EXPECT_EQ(read->loss_scale->good_steps, 12);
}

TEST(Weights, OfAnAdaptedLayerHaveACountOfAnyWidth) {
  const model::Model model =
      *model::ReadKerasJson(R"({"class_name": "Sequential", "config": {"layers": [
          {"class_name": "Normalization", "config": {"name": "n"}}]}})",
                            "the model");
  const std::vector<VariableSpec> variables = *model::Variables(model, model::Features({2}));
  for (const VariableSpec& variable : variables) EXPECT_FALSE(variable.trainable);
  const io::NamedTensors tensors = {{"n/mean", Tensor::Of<float>({2}, {1, 2})},
                                    {"n/variance", Tensor::Of<float>({2}, {3, 4})},
                                    {"n/count", Tensor::Scalar<int32_t>(5)}};
  const std::string path = Path("adapted.safetensors");
  ASSERT_TRUE(io::WriteSafetensors(path, tensors, {}, RealFileSystem()).ok());
  const auto weights = OpenWeights(path, model, variables);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto values = ReadValues(*weights, variables, {});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[1]->data<float>()[1], 4);
  EXPECT_EQ((*values)[2]->data<int64_t>()[0], 5);
}

TEST(OptimizerState, SlotsOfOtherShapesAreErrors) {
  const Some some;
  const auto sgd = [] {
    auto made = optimizer::Optimizer::Default(optimizer::Kind::kSgd);
    made.momentum = 0.5;
    return made;
  }();
  io::NamedTensors datasets = {{"optimizer/vars/0", Tensor::Scalar<int64_t>(3)},
                               {"optimizer/vars/1", Tensor::Scalar<float>(0.1F)}};
  for (int i = 2; i < 7; ++i)
    datasets.emplace_back(StrCat("optimizer/vars/", i), Tensor(DType::kFloat32, Shape({9})));
  const auto read = [&] {
    StatusOr<io::MemoryFile> file = io::MakeHdf5("test", datasets, Json::object());
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(WriteFileAtomically(Path("other.weights.h5"), *file->Map()).ok());
    return std::string(Message(
        ReadOptimizerState(Path("other.weights.h5"), some.model, some.variables, sgd).status()));
  };
  EXPECT_EQ(read(), StrCat(Path("other.weights.h5"), ": optimizer/vars/2, the momentum of ",
                           "first/kernel, is F32[9], but first/kernel is float32[3,2]"));
  for (const int64_t steps : {int64_t{-3}, INT64_MAX}) {
    datasets[0].second = Tensor::Scalar<int64_t>(steps);
    EXPECT_EQ(read(), StrCat(Path("other.weights.h5"), ": optimizer/vars/0: expected a number of ",
                             "steps from 0 to 2^53"));
  }
}

}  // namespace
}  // namespace tfjob::keras
