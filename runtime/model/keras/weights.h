// Reads a file of weights in any supported format, by the names of a model's variables.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::keras {

struct StoredTensor {
  std::optional<DType> dtype;  // the type that `read` returns; nullopt if `read` refuses the tensor
  Shape shape;
};

struct Weights {
  std::string file;  // for errors
  // The tensors by variable name ("dense/kernel"), or by their names in the file if they belong to
  // no variable of the model.
  std::map<std::string, StoredTensor> entries;
  std::function<StatusOr<Tensor>(const std::string& name)> read;
  // True if the file may contain tensors that belong to no variable. For example, a checkpoint also
  // contains the state of the optimizer.
  bool contains_others = false;
};

// Opens a file and determines where it stores the model's variables. The content determines the
// format:
//   .safetensors               by name
//   .keras, NAME.weights.h5    by the layers' names, if the file has all of them, and otherwise by
//                              their classes and order, as Keras 3 does
//   .h5 of Keras 2 or 3        by the layers' names, if the file has all of them, and otherwise by
//                              their order, as Keras does; within a layer, by order
//   a checkpoint's prefix, or a folder with checkpoints (the newest): by name, even if the
//                              checkpoint is object-based (object_graph.h)
// Returns NotFound if there is no such file, InvalidArgument for another format, and DataLoss for a
// damaged file.
StatusOr<Weights> OpenWeights(const std::string& path, const model::Model& model,
                              std::span<const model::VariableSpec> variables);

// Reads the values of the variables, in their order. A variable whose name matches one of the
// patterns `skip` ("logits/*", as in a shell) gets no value.
//
// Returns InvalidArgument, with a message that names the file and the first tensor at fault, if
//   - a variable is missing from the file, or has a different type or shape there;
//   - the file has a tensor that belongs to no variable and matches no pattern (unless
//     `contains_others`); or
//   - a pattern matches nothing.
// Returns Unimplemented if a variable's tensor has a type that is not supported. Shapes and names
// are checked before any value is read.
StatusOr<std::vector<std::optional<Tensor>>> ReadValues(
    const Weights& weights, std::span<const model::VariableSpec> variables,
    std::span<const std::string> skip);

}  // namespace tfjob::keras
