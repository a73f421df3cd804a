// Computes the sums of products that an equation describes, like numpy.einsum for two operands.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"

namespace tfjob::model {

// The axes of the two operands and of the result, one letter each: "abc,cd->abd". A letter that
// both operands have must have the same size in both. A letter that the result lacks is summed
// over.
struct EinsumAxes {
  std::string x, y, z;
};

// Returns InvalidArgument unless each letter occurs at most once in each operand and in the result,
// and the result has only letters of the operands.
Status CheckEinsum(const EinsumAxes& axes);
// Returns the sum of products. Requires axes that CheckEinsum accepts, and operands that fit the
// axes.
graph::Output Einsum(graph::Builder& b, graph::Output x, graph::Output y, const EinsumAxes& axes);

}  // namespace tfjob::model
