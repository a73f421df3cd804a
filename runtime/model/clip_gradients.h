// Adds the clipping of gradients to a graph. Private to this package.
#pragma once

#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/optimizer/clipping.h"

namespace tfjob::model {

// Clips the gradients, using the formulas in optimizer/clipping.h, and returns them in the same
// order. As in Keras, norms are computed in the type of the gradients.
std::vector<graph::Output> ClipGradients(graph::Builder& b, const optimizer::Clipping& clipping,
                                         std::vector<graph::Output> gradients);

}  // namespace tfjob::model
