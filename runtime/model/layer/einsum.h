// Computes sums of products that are specified by an equation, like numpy.einsum with two operands.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"

namespace tfjob::model {

// Names the axes of the two operands and of the result, one letter per axis: "abc,cd->abd". If a
// letter occurs in both operands, the two axes must have the same size. Axes whose letters do not
// occur in the result are summed over.
struct EinsumAxes {
  std::string x, y, z;
};

// Returns InvalidArgument if a letter occurs more than once in an operand or in the result, or if a
// letter of the result occurs in no operand.
Status CheckEinsum(const EinsumAxes& axes);
// Returns the sum of products. Requires axes that CheckEinsum accepts, and operands whose shapes
// match the axes.
graph::Output Einsum(graph::Builder& b, graph::Output x, graph::Output y, const EinsumAxes& axes);

}  // namespace tfjob::model
