// Writes a model with its weights as files that Keras 3 loads.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/base/file_system.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/model/keras/optimizer_state.h"
#include "runtime/model/model.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::keras {

// The settings and the state with which Keras continues training.
struct CompiledModel {
  const Json& compile_config;  // see compile_config.h
  const optimizer::Optimizer& optimizer;
  const OptimizerState* state = nullptr;  // null: the optimizer starts afresh
};

// A model and the values of its variables, in the order of Variables (model.h).
struct WholeModel {
  const model::Model& model;
  std::span<const model::VariableSpec> variables;
  std::span<const Tensor> values;
  std::optional<CompiledModel> compiled = {};
};

// The formats that Write supports, by extension.
inline constexpr const char* kWrittenFormats[] = {".keras", ".weights.h5", ".h5", ".safetensors"};

// Writes the format that the extension of the name specifies:
//   .keras         keras.models.load_model
//   .weights.h5    Model.load_weights of Keras 3
//   .h5            keras.models.load_model; the older format, as a whole model
//   .safetensors   the weights by variable name
// If `compiled` is set, .keras and .h5 files also contain the settings of compile() and the state
// of the optimizer. Equal models give equal files. Replaces the file atomically.
//
// Returns InvalidArgument for any other extension. Propagates I/O errors, and errors from Groups
// (layout.h).
Status Write(const std::string& path, const WholeModel& whole,
             FileSystem& files = RealFileSystem());

}  // namespace tfjob::keras
