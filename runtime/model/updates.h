// Adds the updates of variables by an optimizer to a graph.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/model/layer/layer.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::model {

// Contains the gradient of a variable. If `indices` is valid, `value` contains only the rows with
// these indices.
struct VariableGradient {
  const VariableSpec* variable = nullptr;
  graph::Output value, indices = {};
  // The name that exclude_from_weight_decay applies to: the variable's name in the model. If empty,
  // this is the name of `variable`.
  std::string name = {};
};

// Returns whether ApplyGradients, rather than its caller, must clip the gradients. As in Keras,
// this is the case if gradients are accumulated: only the mean over several steps is clipped, in
// the step that updates the variables.
bool ClipsMean(const optimizer::Optimizer& optimizer, const optimizer::Clipping& clipping);

// Clips the gradients or, if ClipsMean returns true, their means, and updates the variables. `step`
// is the number of steps before this one, an int64 scalar.
void ApplyGradients(graph::Builder& b, const optimizer::Optimizer& optimizer,
                    const optimizer::Clipping& clipping, std::vector<VariableGradient> gradients,
                    graph::Output step);

}  // namespace tfjob::model
