// Adds the clipping of gradients to a graph. Private to this package.
#pragma once

#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/optimizer/clipping.h"

namespace tfjob::model {

// Returns the clipped gradients, in the order of `gradients`, by the formulas of
// optimizer/clipping.h. The norms are sums in the gradients' own type, as in Keras.
std::vector<graph::Output> ClipGradients(graph::Builder& b, const optimizer::Clipping& clipping,
                                         std::vector<graph::Output> gradients);

}  // namespace tfjob::model
