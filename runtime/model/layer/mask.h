// Declares operations on masks (LayerCall in layer.h).
#pragma once

#include "runtime/graph/builder.h"

namespace tfjob::model {

// Returns, for each element, whether it differs from the value.
graph::Output NotEqual(graph::Builder& b, graph::Output x, double value);
// Returns the elementwise "or" of x and y. Both are bool, and are broadcast to a common shape.
graph::Output Or(graph::Builder& b, graph::Output x, graph::Output y);
// Returns whether any element along the last axis is true.
graph::Output AnyOfLastAxis(graph::Builder& b, graph::Output x);
// Returns the mask of x with axes of size 1 appended, so that it broadcasts to x. Reports an error
// to the builder if the mask's axes are not the first axes of x.
graph::Output AlongSteps(graph::Builder& b, graph::Output mask, graph::Output x);
// Returns x with zeros where the mask is false.
graph::Output Masked(graph::Builder& b, graph::Output mask, graph::Output x);

}  // namespace tfjob::model
