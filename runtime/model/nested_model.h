// Defines a layer that is a whole model.
#pragma once

#include <memory>

#include "runtime/model/model.h"

namespace tfjob::model {

// Represents a model as a layer of another model. The names of its variables start with the names
// of its layers: "dense/kernel".
struct NestedModel {
  static constexpr std::string_view kClass = "Functional";
  static constexpr bool kTakesMask = true;
  static constexpr bool kKeepsTypes = true;
  std::shared_ptr<const Model> model;

  void Arguments(ArgumentVisitor&) {}  // keras_layer.cc reads and writes the model
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const {
    return model::OutputTypes(*model, in);
  }
  // Returns the variables. Requires inputs that OutputTypes accepts.
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const { return Forward(*model, call); }
};

// Limit the effort for nested models. Even a small file may cause an enormous amount of work: for
// example, if a model calls a second model twice, the second model calls a third model twice, and
// so on. A call of a layer that computes many parts separately, such as the planes of a 3D kernel,
// counts as one call per part.
inline constexpr int64_t kMostCalls = 40'000;
inline constexpr int kMostLevels = 16;
// Returns InvalidArgument if the model exceeds these limits.
Status CheckEffort(const Model& model);

}  // namespace tfjob::model
