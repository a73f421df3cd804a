#include "runtime/cmd/model_source.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/cmd/config_file.h"
#include "runtime/data/source.h"
#include "runtime/inference/predictor.h"
#include "runtime/model/freeze.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/model/keras/weights.h"
#include "runtime/train/job_definition.h"

namespace tfjob::cmd {
namespace {

// Returns whether the file is a Keras model rather than a training file. Both may be JSON.
StatusOr<bool> IsKerasModel(const std::string& path) {
  ASSIGN_OR_RETURN(const keras::FileFormat format, keras::FormatOf(path));
  if (format != keras::FileFormat::kJson) return format != keras::FileFormat::kOther;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const Json document, ParseJson(text, path));
  return JsonField(document)["class_name"].present();
}

bool StatesInputs(const model::Model& model) {
  for (const auto& stated : model::StatedInputs(model)) {
    if (!stated) return false;
  }
  return true;
}

StatusOr<LoadedModel> LoadFromConfig(const ModelSource& source, bool with_data) {
  ASSIGN_OR_RETURN(const config::TrainingConfig config, ReadConfig(source.model, source.set));
  LoadedModel loaded;
  ASSIGN_OR_RETURN(loaded.model, train::ReadModel(config.model));
  RETURN_IF_ERROR(model::Freeze(loaded.model, config.model.frozen));
  loaded.config = config;
  loaded.weights = config.model_dir;
  loaded.scale = static_cast<float>(config.data.train.scale);
  if (with_data && !StatesInputs(loaded.model)) {
    ASSIGN_OR_RETURN(const auto dataset, train::LoadDataset(config, train::Split::kTrain));
    // Only a Sequential model may leave its input unstated, so there is a single input.
    loaded.example = dataset->Find(model::kFeatures)->shape;
  }
  return loaded;
}

}  // namespace

void ModelSource::AddFlags(CLI::App& app, bool with_weights) {
  app.add_option("--model", model,
                 "The model: Keras' JSON, a .keras or .h5 file, or a training file")
      ->required();
  if (with_weights) {
    app.add_option("--weights", weights,
                   "The weights: a .safetensors, .keras or .h5 file, a checkpoint's prefix, or a "
                   "folder with checkpoints. Default: those of --model, or the last checkpoint in "
                   "the training file's model_dir");
  }
  app.add_option("--set", set, "Overrides a key of the training file: --set model_dir=FOLDER");
}

StatusOr<LoadedModel> LoadModel(const ModelSource& source, bool with_data) {
  LoadedModel loaded;
  ASSIGN_OR_RETURN(const bool keras_model, IsKerasModel(source.model));
  if (keras_model) {
    if (!source.set.empty())
      return InvalidArgument("--set belongs to a training file, but --model is ", source.model);
    ASSIGN_OR_RETURN(loaded.model, keras::ReadModelFile(source.model));
    ASSIGN_OR_RETURN(const keras::FileFormat format, keras::FormatOf(source.model));
    if (format != keras::FileFormat::kJson) loaded.weights = source.model;
  } else {
    ASSIGN_OR_RETURN(loaded, LoadFromConfig(source, with_data));
  }
  if (!source.weights.empty()) loaded.weights = source.weights;
  return loaded;
}

StatusOr<std::vector<model::TensorType>> FeaturesOf(const LoadedModel& loaded) {
  std::vector<Tensor> examples;
  if (loaded.example) examples.emplace_back(DType::kFloat32, model::Batched(0, *loaded.example));
  return inference::FeaturesOf(loaded.model, examples);
}

StatusOr<std::vector<Tensor>> LoadValues(const LoadedModel& loaded,
                                         std::span<const model::VariableSpec> variables) {
  if (variables.empty()) return std::vector<Tensor>();
  if (loaded.weights.empty())
    return InvalidArgument("the model comes without weights; give a file with --weights");
  ASSIGN_OR_RETURN(const keras::Weights weights,
                   keras::OpenWeights(loaded.weights, loaded.model, variables));
  ASSIGN_OR_RETURN(std::vector<std::optional<Tensor>> read,
                   keras::ReadValues(weights, variables, {}));
  std::vector<Tensor> values;
  for (std::optional<Tensor>& value : read) values.push_back(*std::move(value));
  return values;
}

}  // namespace tfjob::cmd
