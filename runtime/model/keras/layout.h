// Determines where Keras' HDF5 files store the variables of a model. The locations depend only on
// the model's structure.
//
// In Keras 3's format (model.weights.h5 in a .keras file, and NAME.weights.h5), there is one group
// per layer, named after the layer's class. Layers of the same class are numbered in the order of
// the model's layers:
//   layers/dense/vars/0, layers/dense_1/vars/0, layers/functional/layers/dense/vars/0,
//   layers/lstm/cell/vars/0
// Source: keras/src/saving/saving_lib.py.
//
// In the older format (.h5 files of Keras 2 and Keras 3), there is one group per layer, named after
// the layer. An attribute of the group lists the layer's weights, trainable ones first. Source:
// keras/src/legacy/saving/legacy_h5_format.py.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::keras {

// Lists the variables of one Keras object: a layer, or a part of a layer such as a cell.
struct Group {
  std::string path;  // of the group in Keras 3's file: "layers/dense_1"
  std::string name;  // of the object in Keras: "logits"
  // The names of the object's variables, such as "logits/kernel", in the order of their numbers in
  // the file. Empty for a layer without variables.
  std::vector<std::string> variables;
};

// Returns the groups of all layers and of their parts, in the order of the layers. `variables` are
// the variables of the model (Variables in model.h). Returns Unimplemented if the location of a
// part in Keras' file is unknown; the message names the layer.
StatusOr<std::vector<Group>> Groups(const model::Model& model,
                                    std::span<const model::VariableSpec> variables);

// Lists the variables of one layer of the outermost model, in the order of the older format:
// variables that were trainable when the file was written come first.
struct LayerWeights {
  std::string layer;
  std::vector<std::string> variables;
};

// Specifies which `trainable` flags determine the order of variables. Use kOfFile to read a file,
// which was written before `model.frozen` was applied. Use kPresent to write a file with the
// present flags.
enum class TrainableFlags { kOfFile, kPresent };

// Returns one element per layer, in the order of the model, including layers without variables.
std::vector<LayerWeights> WeightsByLayer(const model::Model& model,
                                         std::span<const model::VariableSpec> variables,
                                         TrainableFlags flags);

// Returns the names of the variables in Keras' order, that is, in the order of the layers, not in
// the order of their first calls.
std::vector<std::string> KerasOrder(const model::Model& model,
                                    std::span<const model::VariableSpec> variables);

}  // namespace tfjob::keras
