// Declares the nodes of a step. Each of these functions returns a node in the form of a function
// (Emit) that appends the node's ops to a graph.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/model.h"
#include "runtime/steps/definition.h"

namespace tfjob::steps {

Emit InputNode(size_t input);
// Computes the total number of examples of all replicas, as a float32 scalar.
Emit AllExamplesNode();
// Calls a model. The inputs of the node are the inputs of the model. If `training` is set, the step
// also updates the model's moving statistics.
Emit ModelNode(size_t model, bool training);
// Calls a layer without variables.
Emit LayerNode(model::LayerConfig layer);
// Reads the value of a variable before the step.
Emit VariableNode(size_t model, size_t variable);
// Computes the sum of all penalties of the model's regularizers: the penalties on trainable
// variables, and those on the outputs of layers in calls that precede this node.
Emit PenaltyNode(size_t model);
// Computes d inputs[0] / d inputs[i] for each i > 0. inputs[0] must be a scalar of a float type.
Emit GradientNode();
// Returns the input, but blocks its gradient.
Emit StopGradientNode();
// Draw random float32 numbers, with this shape for each example. The numbers differ between runs,
// replicas and nodes.
Emit RandomNormalNode(Shape example, double mean, double stddev);
Emit RandomUniformNode(Shape example, double low, double high);
// Computes the cross-entropy of each row of logits. The inputs are the labels and the logits [n,c].
// The labels are either integer classes [n], or probabilities with the type and shape of the
// logits.
Emit CrossEntropyNode();

}  // namespace tfjob::steps
