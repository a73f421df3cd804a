// Writes a model and its weights to files that Keras 3 can load.
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

// Contains the settings and the state that Keras needs to continue training.
struct CompiledModel {
  const Json& compile_config;  // see compile_config.h
  const optimizer::Optimizer& optimizer;
  const OptimizerState* state = nullptr;  // null: the optimizer starts without state
};

// Contains a model and the values of its variables, in the order of Variables (model.h).
struct WholeModel {
  const model::Model& model;
  std::span<const model::VariableSpec> variables;
  std::span<const Tensor> values;
  std::optional<CompiledModel> compiled = {};
};

// Lists the extensions of the formats that Write supports.
inline constexpr const char* kWrittenFormats[] = {".keras", ".weights.h5", ".h5", ".safetensors"};

// Writes the model in the format that the file name's extension specifies:
//   .keras         a whole model, for keras.models.load_model
//   .weights.h5    only the weights, for Model.load_weights of Keras 3
//   .h5            a whole model in the older format, for keras.models.load_model
//   .safetensors   only the weights, by variable name
// If `compiled` is set, .keras and .h5 files also contain the compile() settings and the state of
// the optimizer. Equal models produce identical files. Replaces the file atomically.
//
// Returns InvalidArgument if the extension is not supported. Propagates I/O errors, and errors from
// Groups (layout.h).
Status Write(const std::string& path, const WholeModel& whole,
             FileSystem& files = RealFileSystem());

}  // namespace tfjob::keras
