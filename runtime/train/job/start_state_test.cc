#include <gtest/gtest.h>

#include "runtime/io/safetensors.h"
#include "runtime/io/zip_writer.h"
#include "runtime/model/keras/write.h"
#include "runtime/state/snapshot.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/compiled_model.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::train {
namespace {

// The training file of a model of two dense layers.
StatusOr<config::TrainingConfig> Config(const std::string& model_keys) {
  const std::string text = StrCat(
      "model:\n  layers: [{Dense: {units: 2, name: body}}, {Dense: {units: 1, name: head}}]\n",
      model_keys,
      "loss: mean_squared_error\n"
      "optimizer: {name: adagrad}\n"
      "data: {train: {format: linear}}\n"
      "max_steps: 1\n");
  ASSIGN_OR_RETURN(const config::TrainingConfig config, config::ParseTrainingConfig(text, "t"));
  RETURN_IF_ERROR(config::Validate(config));
  return config;
}

StatusOr<strategy::ModelDefinition> Define(const config::TrainingConfig& config) {
  ASSIGN_OR_RETURN(const auto dataset, LoadDataset(config, Split::kTrain));
  return DefineModel(config, Split::kTrain, *dataset, 1);
}

// Returns the state from which the model starts. The variables that `streamed` lists are streamed.
StatusOr<state::Snapshot> Start(const std::string& model_keys, std::vector<int> streamed = {}) {
  ASSIGN_OR_RETURN(const config::TrainingConfig config, Config(model_keys));
  ASSIGN_OR_RETURN(const strategy::ModelDefinition definition, Define(config));
  return StartState(config, definition, streamed);
}

std::string Weights(const std::string& name, const io::NamedTensors& tensors) {
  const std::string path = StrCat(testing::TempDir(), "/", name);
  EXPECT_TRUE(io::WriteSafetensors(path, tensors).ok());
  return path;
}

const io::NamedTensors kBody = {{"body/kernel", Tensor::Of<float>({1, 2}, {5, 6})},
                                {"body/bias", Tensor::Of<float>({2}, {7, 8})}};

TEST(StartState, GivenWeightsReplaceInitialValues) {
  const std::string path = Weights("body.safetensors", kBody);
  const auto initial = Start("");
  const auto start = Start(StrCat("  weights: ", path, "\n  weights_skip: [head/*]\n"));
  ASSERT_TRUE(initial.ok()) << initial.status();
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->global_step, 0);
  EXPECT_TRUE(
      std::ranges::equal(start->variables[0].value.data<float>(), std::vector<float>{5, 6}));
  EXPECT_TRUE(
      std::ranges::equal(start->variables[1].value.data<float>(), std::vector<float>{7, 8}));
  EXPECT_TRUE(std::ranges::equal(start->variables[0].slots[0].data<float>(),
                                 std::vector<float>{0.1F, 0.1F}));
  EXPECT_TRUE(
      std::ranges::equal(start->variables[2].value.bytes(), initial->variables[2].value.bytes()))
      << "the new head keeps its initial values";
}

// Keras trains all variables of a layer, so it needs their slots.
TEST(CompileForKeras, VariablesFrozenByTheirNamesHaveInitialSlots) {
  const auto config = Config("  frozen: [body/bias]\n");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto definition = Define(*config);
  ASSERT_TRUE(definition.ok()) << definition.status();
  auto start = StartState(*config, *definition);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->variables[0].slots.size(), 1U);
  EXPECT_TRUE(start->variables[1].slots.empty());
  start->variables[0].slots[0].data<float>()[0] = 7;
  const auto run = CompileForKeras(*config, *definition, *start);
  ASSERT_TRUE(run.ok() && *run && (*run)->state) << run.status();
  const auto& slots = (*run)->state->slots;
  EXPECT_EQ(slots.size(), 4U);
  EXPECT_EQ(slots.at("body/kernel").at("accumulator").data<float>()[0], 7);
  EXPECT_TRUE(std::ranges::equal(slots.at("body/bias").at("accumulator").data<float>(),
                                 std::vector<float>{0.1F, 0.1F}));
}

TEST(DefineModel, TheKeyDTypePolicySetsThePolicyOfLayersThatNameNone) {
  const auto read = [](const std::string& layers) {
    const auto config = config::ParseTrainingConfig(
        StrCat("model: {layers: ", layers, ", dtype_policy: mixed_bfloat16}"), "t");
    EXPECT_TRUE(config.ok()) << config.status();
    return ReadModel(config->model);
  };
  const auto model = read("[{Dense: {units: 2}}, {Dense: {units: 1, dtype: float32}}]");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->layers[0].policy, model::DTypePolicy::kMixedBFloat16);
  EXPECT_EQ(model->layers[1].policy, model::DTypePolicy::kFloat32);
  EXPECT_EQ(Message(read("[{Dense: {units: 1, dtype: float32}}]").status()),
            "model.dtype_policy: mixed_bfloat16 would change no layer: each names its own policy, "
            "such as layer dense (Dense) with float32; remove this key, or change the layers");
}

// Returns the values of a variable (part 0) or of one of its slots.
std::vector<float> PartOf(const state::VariableState& state, size_t part) {
  if (state.streamed.empty()) {
    const Tensor& tensor = part == 0 ? state.value : state.slots[part - 1];
    return {tensor.data<float>().begin(), tensor.data<float>().end()};
  }
  std::vector<float> values(2);
  EXPECT_EQ(state.streamed[part]->Read(0, std::as_writable_bytes(std::span(values))), OkStatus());
  return values;
}

TEST(StartState, StreamsGivenWeightsAndTheirSlots) {
  const std::string keys =
      StrCat("  weights: ", Weights("body.safetensors", kBody), "\n  weights_skip: [head/*]\n");
  const auto start = Start(keys, {0});
  ASSERT_TRUE(start.ok()) << start.status();
  ASSERT_EQ(start->variables[0].streamed.size(), 2U);
  EXPECT_TRUE(start->variables[1].streamed.empty());
  EXPECT_EQ(PartOf(start->variables[0], 0), (std::vector<float>{5, 6}));
  EXPECT_EQ(PartOf(start->variables[0], 1), (std::vector<float>{0.1F, 0.1F}));
}

TEST(StartState, StreamsTheStateOfTheOptimizer) {
  const auto config = *Config("");
  const auto definition = *Define(config);
  state::Snapshot saved = *StartState(config, definition);
  for (float& value : saved.variables[0].slots[0].data<float>()) value = 3;
  const auto run = CompileForKeras(config, definition, saved);
  ASSERT_TRUE(run.ok() && *run && (*run)->state) << run.status();
  std::vector<Tensor> values;
  for (const state::VariableState& variable : saved.variables) values.push_back(variable.value);
  keras::WholeModel whole{definition.model, definition.variables, values};
  whole.compiled.emplace(
      keras::CompiledModel{*(*run)->compile_config, (*run)->optimizer, &*(*run)->state});
  const std::string path = testing::TempDir() + "/state.keras";
  ASSERT_EQ(keras::Write(path, whole), OkStatus());
  const auto start = Start(StrCat("  weights: ", path, "\n  optimizer_state: ", path, "\n"), {0});
  ASSERT_TRUE(start.ok()) << start.status();
  ASSERT_EQ(start->variables[0].streamed.size(), 2U);
  EXPECT_EQ(PartOf(start->variables[0], 0), PartOf(saved.variables[0], 0));
  EXPECT_EQ(PartOf(start->variables[0], 1), (std::vector<float>{3, 3}));
  EXPECT_EQ(PartOf(start->variables[1], 1), (std::vector<float>{0.1F, 0.1F}));
}

TEST(StartState, ADifferenceIsNamed) {
  const std::string path = Weights("part.safetensors", kBody);
  const Status status = Start(StrCat("  weights: ", path, "\n")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(Message(status), StrCat("model.weights: ", path, " has no weights for head/kernel"));
  EXPECT_TRUE(absl::IsNotFound(Start("  weights: /nowhere\n").status()));
}

// The training may take the optimizer and its state from the file, or only the state.
TEST(CompiledSettings, AnOptimizerThatCannotContinueIsAnErrorThatSaysWhatToChange) {
  const std::string path = testing::TempDir() + "/nadam.keras";
  constexpr std::string_view kConfig =
      R"({"keras_version": "2.15.0", "compile_config": {"optimizer": "nadam"}})";
  const auto zip = io::ZipWriter::Create(path);
  ASSERT_TRUE(zip.ok()) << zip.status();
  ASSERT_EQ((*zip)->Add("config.json", {&kConfig, 1}), OkStatus());
  ASSERT_EQ((*zip)->Finish(), OkStatus());
  const std::string reason = StrCat(path, ": compile_config.optimizer: Nadam of tf.keras 2 has ",
                                    "a different momentum schedule, unlike ours; ");
  const std::string weights = Weights("body.safetensors", kBody);
  EXPECT_EQ(Message(Start(StrCat("  weights: ", weights, "\n  weights_skip: [head/*]\n",
                                 "  optimizer_state: ", path, "\n"))
                        .status()),
            StrCat("model.optimizer_state: ", reason,
                   "so its state cannot be continued; remove model.optimizer_state"));
  const auto config = config::ParseTrainingConfig(
      StrCat("model: {file: ", path, "}\nloss: mean_squared_error\n"), "t");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(Message(WithCompiledSettings(*config).status()),
            StrCat(reason, "set optimizer.name and its settings in the training file"));
}

TEST(GlobalBatch, IsAMultipleOfTheTasksUnlessTheyMakeItTogether) {
  const StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(
      "model: {layers: [{Dense: {units: 1}}]}\n"
      "loss: mean_squared_error\n"
      "data: {train: {format: linear}}\n"
      "global_batch_size: 7\n"
      "max_steps: 1\n",
      "t");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto dataset = LoadDataset(*config, Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const auto pipeline = [&](int tasks, bool together = false) -> Status {
    ASSIGN_OR_RETURN(const strategy::ModelDefinition definition,
                     DefineModel(*config, Split::kTrain, **dataset, tasks));
    return TrainingPipeline(*config, definition, **dataset, 0, tasks, together).status();
  };
  EXPECT_EQ(pipeline(1), OkStatus());
  EXPECT_EQ(pipeline(7), OkStatus());
  EXPECT_EQ(Message(pipeline(3)),
            "global_batch_size: expected a multiple of the 3 training tasks, got 7");
  EXPECT_EQ(pipeline(3, /*together=*/true), OkStatus());
  EXPECT_EQ(Message(pipeline(8, /*together=*/true)),
            "global_batch_size: expected at least one example for each of the 8 training tasks, "
            "got 7");
}

}  // namespace
}  // namespace tfjob::train
