// Determines the model and the weights that a subcommand uses.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/model/model.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::cmd {

// The flags --model, --weights and --set.
struct ModelSource {
  std::string model;
  std::string weights;
  std::vector<std::string> set;

  void AddFlags(CLI::App& app, bool with_weights);
};

struct LoadedModel {
  model::Model model;
  // The file or folder with the weights: --weights if given; otherwise --model if that is a whole
  // model; otherwise the training file's model_dir. "" if there are no weights.
  std::string weights;
  // The shape of an example in the training file's data; nullopt without a training file.
  std::optional<Shape> example;
  std::optional<config::TrainingConfig> config;  // the training file
};

// Reads the model that --model names: Keras' JSON, a .keras or .h5 file, or a training file. With
// `with_data`, also reads the training file's data if the model does not state the shape of its
// input.
StatusOr<LoadedModel> LoadModel(const ModelSource& source, bool with_data);

// Returns the factor by which training multiplies the float32 inputs: the training file's
// data.train.scale, times the scale of its datasets. Returns 1 if there is data.augment, because
// its layers transform scaled inputs into inputs of the model. Returns InvalidArgument, with a
// message that names the datasets, if the scales of the datasets differ.
StatusOr<float> ScaleOf(const LoadedModel& loaded);

// Returns the types of the model's inputs. Returns InvalidArgument if neither the model nor the
// data states these types.
StatusOr<std::vector<model::TensorType>> FeaturesOf(const LoadedModel& loaded);

// Reads the values of all variables. Returns InvalidArgument if there are no weights.
StatusOr<std::vector<Tensor>> LoadValues(const LoadedModel& loaded,
                                         std::span<const model::VariableSpec> variables);

}  // namespace tfjob::cmd
