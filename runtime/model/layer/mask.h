// Declares operations on masks (LayerCall in layer.h).
#pragma once

#include "runtime/graph/builder.h"

namespace tfjob::model {

// Returns, for each element of x, whether it differs from the value.
graph::Output NotEqual(graph::Builder& b, graph::Output x, double value);
// Returns the elementwise logical or of two bool tensors, which are broadcast to a common shape.
graph::Output Or(graph::Builder& b, graph::Output x, graph::Output y);
// Returns, for each vector along the last axis, whether any of its elements is true.
graph::Output AnyOfLastAxis(graph::Builder& b, graph::Output x);
// Appends axes of size 1 to the mask of x, so that the mask broadcasts to x. Reports an error to
// the builder if the axes of the mask are not the first axes of x.
graph::Output AlongSteps(graph::Builder& b, graph::Output mask, graph::Output x);
// Returns x, with zeros wherever the mask is false.
graph::Output Masked(graph::Builder& b, graph::Output mask, graph::Output x);

}  // namespace tfjob::model
