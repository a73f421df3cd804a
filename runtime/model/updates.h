// Adds the updates of variables by an optimizer to a graph.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/model/layer/layer.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::model {

// The gradient of a variable. If `indices` is valid, `value` contains only the rows with these
// indices.
struct VariableGradient {
  const VariableSpec* variable = nullptr;
  graph::Output value, indices = {};
  // The variable's name in the model, in which exclude_from_weight_decay is searched; empty if it
  // is that of `variable`.
  std::string name = {};
};

// Returns whether ApplyGradients must clip the gradients, rather than its caller. As in Keras, this
// is so if gradients are accumulated: only the mean over several steps is clipped, in the step of
// the update.
bool ClipsMean(const optimizer::Optimizer& optimizer, const optimizer::Clipping& clipping);

// Clips the gradients, and updates their variables. `step` is the number of steps before this one,
// an int64 scalar.
void ApplyGradients(graph::Builder& b, const optimizer::Optimizer& optimizer,
                    const optimizer::Clipping& clipping, std::vector<VariableGradient> gradients,
                    graph::Output step);

}  // namespace tfjob::model
