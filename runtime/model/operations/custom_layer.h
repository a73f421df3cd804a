// Defines layers that users compose from functions of keras.ops and variables.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/model/layer/layer.h"
#include "runtime/model/operations/operation.h"

namespace tfjob::model::layers {

// Computes its only output with operations. The layer's values have the batch as their first axis,
// but its variables do not. Each result that depends on an input of the layer must be computed for
// each example separately.
struct CustomLayer {
  static constexpr std::string_view kClass = "CustomLayer";
  // The name in files. Keras cannot load a layer with this name.
  static constexpr char kRegistered[] = "tfjob>CustomLayer";

  // Identifies a value. The values are the inputs of the layer, the variables and the results of
  // the steps, in this order; a step has one or more outputs.
  struct Ref {
    size_t value = 0, output = 0;
  };
  struct Step {
    std::string name;  // for error messages
    Operation operation;
    std::vector<Ref> inputs;  // earlier values
  };

  size_t inputs = 1;
  std::vector<VariableSpec> variables;
  std::vector<Step> steps;
  Ref output;
  std::shared_ptr<const Json> body;  // the steps as a functional model, in Keras' form

  void Arguments(ArgumentVisitor&) {}  // model/keras_layer.cc reads and writes the members
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<VariableSpec> Variables(std::span<const TensorType>) const { return variables; }
  std::vector<graph::Output> Apply(LayerCall& call) const;
};

// Returns InvalidArgument if a variable has an invalid name, a name that another variable has, or a
// shape that its initializer or its regularizer does not support.
Status CheckVariables(const CustomLayer& layer);

}  // namespace tfjob::model::layers
