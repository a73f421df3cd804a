// Defines a layer that is a whole model.
#pragma once

#include <memory>

#include "runtime/model/model.h"

namespace tfjob::model {

// The names of its variables begin with the names of its own layers: "dense/kernel".
struct NestedModel {
  static constexpr std::string_view kClass = "Functional";
  std::shared_ptr<const Model> model;

  void Arguments(ArgumentVisitor&) {}  // keras_layer.cc reads and writes it
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const {
    return model::OutputTypes(*model, in);
  }
  // OutputTypes has accepted the inputs, and so does Variables, except for a variable that is too
  // large. That is refused where the whole model's variables are listed.
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<Value> Apply(LayerCall& call) const { return Forward(*model, call); }
};

}  // namespace tfjob::model
