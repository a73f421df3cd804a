// Makes the nodes of a step.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/model.h"
#include "runtime/steps/definition.h"

namespace tfjob::steps {

Emit InputNode(size_t input);
// The examples of all replicas together, a float32 scalar.
Emit AllExamplesNode();
// Calls a model. The inputs of the node are those of the model. With `training`, the step also
// changes the model's moving statistics.
Emit ModelNode(size_t model, bool training);
// Calls a layer without variables.
Emit LayerNode(model::LayerConfig layer);
// The value of a variable before the step.
Emit VariableNode(size_t model, size_t variable);
// The sum of the penalties of the model's regularizers: on its trainable variables and, if they are
// called before this node, on the outputs of its layers.
Emit PenaltyNode(size_t model);
// d inputs[0] / d inputs[i], for i > 0. The first input must be a scalar of a float type.
Emit GradientNode();
// The input, through which no gradient flows.
Emit StopGradientNode();
// Random float32 numbers, of this shape for each example. They differ between runs, replicas and
// nodes.
Emit RandomNormalNode(Shape example, double mean, double stddev);
Emit RandomUniformNode(Shape example, double low, double high);
// Cross-entropies of logits [n,c], one per row. The inputs are labels and logits. The labels are
// classes, integers [n], or probabilities, of the logits' type and shape.
Emit CrossEntropyNode();

}  // namespace tfjob::steps
