// Writes a model with its weights as files that Keras 3 loads.
#pragma once

#include <span>
#include <string>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::keras {

// A model and the values of its variables, in the order of Variables (model.h).
struct WholeModel {
  const model::Model& model;
  std::span<const model::VariableSpec> variables;
  std::span<const Tensor> values;
};

// The formats that Write supports, by the end of the file's name.
inline constexpr const char* kWrittenFormats[] = {".keras", ".weights.h5", ".h5", ".safetensors"};

// Writes the format that the end of the name specifies:
//   .keras         keras.models.load_model
//   .weights.h5    Model.load_weights of Keras 3
//   .h5            keras.models.load_model; the older format, as a whole model
//   .safetensors   the weights by the names of the variables
// The models in the files are not compiled for training, and the files contain no optimizer state.
// Equal models give equal files. Replaces the file only once the new one is complete.
//
// Returns InvalidArgument for any other name, and the errors of Groups (layout.h).
Status Write(const std::string& path, const WholeModel& whole,
             FileSystem& files = RealFileSystem());

}  // namespace tfjob::keras
