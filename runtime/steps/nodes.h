// Returns functions that append the nodes of a step.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/model.h"
#include "runtime/steps/definition.h"

namespace tfjob::steps {

Emit InputNode(size_t input);
// Computes the total number of examples in all replicas, a float32 scalar.
Emit AllExamplesNode();
// Calls a model. The inputs of the node are those of the model. With `training`, the step also
// changes the model's moving statistics.
Emit ModelNode(size_t model, bool training);
// Calls a layer without variables.
Emit LayerNode(model::LayerConfig layer);
// Reads the value that a variable has before the step.
Emit VariableNode(size_t model, size_t variable);
// Computes the sum of the penalties of the model's regularizers on its trainable variables, and on
// the outputs of its layers in calls before this node.
Emit PenaltyNode(size_t model);
// Computes d inputs[0] / d inputs[i] for each i > 0. The first input must be a scalar of a float
// type.
Emit GradientNode();
// Passes its input on, but lets no gradient flow through it.
Emit StopGradientNode();
// Draw random float32 numbers, of this shape for each example. They differ between runs, replicas
// and nodes.
Emit RandomNormalNode(Shape example, double mean, double stddev);
Emit RandomUniformNode(Shape example, double low, double high);
// Computes the cross-entropy of each row of logits [n,c]. The inputs are the labels and the logits.
// The labels are either integer classes [n], or probabilities with the type and shape of the
// logits.
Emit CrossEntropyNode();

}  // namespace tfjob::steps
