// Computes sums of products that an equation describes, as numpy.einsum does for two operands.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"

namespace tfjob::model {

// The axes of the two operands and of the result, one letter each: "abc,cd->abd". A letter in both
// operands has one size. A letter that the result lacks is summed over.
struct EinsumAxes {
  std::string x, y, z;
};

// Returns InvalidArgument unless each operand and the result have each letter at most once, and
// the result has only letters of the operands.
Status CheckEinsum(const EinsumAxes& axes);
// Returns the sum of products. Requires axes that CheckEinsum accepts, and operands that fit them.
graph::Output Einsum(graph::Builder& b, graph::Output x, graph::Output y, const EinsumAxes& axes);

}  // namespace tfjob::model
