// Declares GELU as several ops. FuseGelu (passes.h) recognises these ops and their gradients.
#pragma once

#include "runtime/graph/builder.h"

namespace tfjob::graph {

// Returns the approximation of GELU(x) with tanh (Hendrycks and Gimpel, "Gaussian Error Linear
// Units", 2016): x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))).
Output ApproximateGelu(Builder& b, Output x);

}  // namespace tfjob::graph
