// Determines where Keras' HDF5 files store the variables of a model. This depends only on the
// model's structure.
//
// Keras 3 (model.weights.h5 in a .keras file, and files NAME.weights.h5) has a group per layer,
// named after the layer's class. Layers of the same class are numbered in the order of the model's
// layers:
//   layers/dense/vars/0, layers/dense_1/vars/0, layers/functional/layers/dense/vars/0,
//   layers/lstm/cell/vars/0
// Source: keras/src/saving/saving_lib.py.
//
// The older format (.h5 of Keras 2 and Keras 3) has a group per layer, named after the layer, with
// an attribute that lists the layer's weights, trainable ones first. Source:
// keras/src/legacy/saving/legacy_h5_format.py.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::keras {

// The variables of one Keras object: a layer, or a part of a layer such as a cell.
struct Group {
  std::string path;  // of the group in Keras 3's file: "layers/dense_1"
  std::string name;  // of the object in Keras: "logits"
  // Its variables' names, in the order of their numbers in the file: "logits/kernel". Empty for a
  // layer without variables.
  std::vector<std::string> variables;
};

// Returns the groups of all layers and of their parts, in the order of the layers. `variables` are
// the variables of the model (Variables in model.h). Returns Unimplemented, with a message that
// names the layer, for a part whose location in Keras' file is unknown.
StatusOr<std::vector<Group>> Groups(const model::Model& model,
                                    std::span<const model::VariableSpec> variables);

// The variables of one layer of the outermost model, in the order of the older format: first those
// that were trainable when the file was written.
struct LayerWeights {
  std::string layer;
  std::vector<std::string> variables;
};

// Use kOfFile to read a file, which was written before `model.frozen` was applied, and kPresent to
// write a file, whose layers will have the present flags.
enum class TrainableFlags { kOfFile, kPresent };

// Returns the layers in the order of the model, including those without variables.
std::vector<LayerWeights> WeightsByLayer(const model::Model& model,
                                         std::span<const model::VariableSpec> variables,
                                         TrainableFlags flags);

// Returns the names of the variables in Keras' order: the order of the layers, not of their first
// calls.
std::vector<std::string> KerasOrder(const model::Model& model,
                                    std::span<const model::VariableSpec> variables);

}  // namespace tfjob::keras
