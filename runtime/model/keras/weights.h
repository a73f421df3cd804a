// Reads the values of a model's variables from a weights file in any supported format.
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
  std::optional<DType> dtype;  // the type that `read` returns; nullopt if `read` rejects the tensor
  Shape shape;
};

// Fills `to` with bytes of a tensor's dense values, starting at byte `offset`. Keeps the file open.
// Any number of threads may call it.
using PieceReader = std::function<Status(int64_t offset, std::span<std::byte> to)>;

struct Weights {
  std::string file;  // for error messages
  // The tensors in the file. The key is the name of the variable ("dense/kernel") or, for a tensor
  // that does not belong to a variable of the model, the tensor's name in the file.
  std::map<std::string, StoredTensor> entries;
  std::function<StatusOr<Tensor>(const std::string& name)> read;
  // Like `read`, but does not load the tensor into memory.
  std::function<StatusOr<PieceReader>(const std::string& name)> open;
  // Whether the file may contain tensors that do not belong to a variable. For example, a
  // checkpoint also contains the state of the optimizer.
  bool contains_others = false;
};

// Opens a file and determines where it stores the model's variables. The format is detected by the
// file's content. The format determines how variables are found:
//   .safetensors               by name
//   .keras, NAME.weights.h5    by the names of the layers if the file contains all of them, and
//                              otherwise by the classes and the order of the layers, like Keras 3
//   .h5 of Keras 2 or 3        by the names of the layers if the file contains all of them, and
//                              otherwise by the order of the layers, like Keras; within a layer, by
//                              order
//   checkpoint                 by name, even if the checkpoint is object-based (object_graph.h);
//                              `path` is a prefix, or a folder, whose newest checkpoint is used
// Returns NotFound if the file does not exist, InvalidArgument if its format is not supported, and
// DataLoss if the file is corrupt.
StatusOr<Weights> OpenWeights(const std::string& path, const model::Model& model,
                              std::span<const model::VariableSpec> variables);

// Reads the values of the variables, in the order of `variables`. A variable whose name matches any
// of the shell patterns `skip` ("logits/*") gets nullopt.
//
// Returns InvalidArgument, with a message that names the file and the first faulty tensor, if
//   - a variable is missing from the file, or has a different type or shape in the file;
//   - the file contains a tensor that does not belong to a variable and does not match a pattern
//     (unless `contains_others` is true); or
//   - a pattern matches no variable.
// Returns Unimplemented if a variable's tensor has an unsupported type. Checks all names and shapes
// before reading any values.
StatusOr<std::vector<std::optional<Tensor>>> ReadValues(
    const Weights& weights, std::span<const model::VariableSpec> variables,
    std::span<const std::string> skip);

// The value of a variable in a file.
struct StoredValue {
  Tensor whole;
  PieceReader pieces;  // if set, `whole` is empty
};
// Like ReadValues, but does not load the variables that `streamed` lists (indices in ascending
// order) into memory, unless their values must be converted to another type.
StatusOr<std::vector<std::optional<StoredValue>>> OpenValues(
    const Weights& weights, std::span<const model::VariableSpec> variables,
    std::span<const std::string> skip, std::span<const int> streamed);

}  // namespace tfjob::keras
