#include "runtime/cmd/model_source.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/cmd/config_file.h"
#include "runtime/data/source.h"
#include "runtime/inference/predictor.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/model/keras/weights.h"
#include "runtime/model/layer_patterns.h"
#include "runtime/train/job/batch_source.h"
#include "runtime/train/job/job_definition.h"

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

// The scale of a dataset's inputs, and the dataset that sets it.
struct InputScale {
  float factor;
  std::string key;
};

// Returns the scale of a dataset's inputs, or nullopt if the dataset is part of a zip and provides
// no inputs.
StatusOr<std::optional<InputScale>> ScaleIn(const config::SourceConfig& source,
                                            const std::string& key, bool zipped) {
  const auto factor = static_cast<float>(source.scale);
  if (source.datasets.empty()) {
    if (zipped && source.inputs.empty()) return std::optional<InputScale>();
    return InputScale{factor, key};
  }
  zipped = zipped || source.format == config::DataFormat::kZip;
  std::optional<InputScale> common;
  for (size_t i = 0; i < source.datasets.size(); ++i) {
    ASSIGN_OR_RETURN(const std::optional<InputScale> part,
                     ScaleIn(source.datasets[i], StrCat(key, ".datasets[", i, "]"), zipped));
    if (!part) continue;
    if (!common) common = part;
    if (part->factor == common->factor) continue;
    return InvalidArgument(
        "expected one scale, by which the inputs are multiplied as in training, ", "but ",
        common->key, " has the scale ", common->factor, " and ", part->key, " has ", part->factor,
        "; override data.train with --set for the data that you give");
  }
  if (common) common->factor *= factor;
  return common;
}

StatusOr<LoadedModel> LoadFromConfig(const ModelSource& source, bool with_data) {
  ASSIGN_OR_RETURN(const config::TrainingConfig config, ReadConfig(source.model, source.set));
  LoadedModel loaded;
  ASSIGN_OR_RETURN(loaded.model, train::ReadModel(config.model));
  RETURN_IF_ERROR(model::Freeze(loaded.model, config.model.frozen));
  loaded.config = config;
  loaded.weights = config.model_dir;
  if (with_data && !StatesInputs(loaded.model)) {
    ASSIGN_OR_RETURN(auto dataset,
                     train::LoadDataset(WithoutCaches(config), train::Split::kTrain, loaded.model));
    ASSIGN_OR_RETURN(dataset, train::AugmentedSource(config, train::Split::kTrain, loaded.model,
                                                     std::move(dataset)));
    // Only a Sequential model may omit the type of its input, so there is a single input.
    const data::Field* field = dataset->Find(model::kFeatures);
    if (field == nullptr) {
      return InvalidArgument("data.train: the data provide no ", model::kFeatures,
                             ", which the model needs; none of the datasets has the model's input");
    }
    loaded.example = field->shape;
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

StatusOr<float> ScaleOf(const LoadedModel& loaded) {
  if (!loaded.config) return 1;
  // The inputs of the layers of data.augment are already scaled, and so are their results.
  if (loaded.config->data.augment != nullptr) return 1;
  ASSIGN_OR_RETURN(const std::optional<InputScale> scale,
                   ScaleIn(loaded.config->data.train, "data.train", /*zipped=*/false));
  return scale ? scale->factor : 1;
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
