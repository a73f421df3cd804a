// Declares the functions that the families of ops share. Each family has one file in ops/, which
// contains the inference functions, gradients, op table rows and builder functions (ops.h) of its
// ops. Private to this package.
//
// An inference function derives the types of the outputs from the types of the inputs and the
// attributes. Error messages say what was expected; InferTypes prepends the op and its inputs.
//
// A gradient function returns one gradient per input, with the type of that input. If the formula
// is not obvious from the code, a comment above the function states the formula. In these comments,
// d_x means d loss / d x.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/graph/op.h"

namespace tfjob::graph {

using InferResult = StatusOr<std::vector<TensorType>>;
using Gradient = std::vector<Output>;

// Return the op table rows of one family each.
std::vector<Op> SourceOps();
std::vector<Op> LinearOps();
std::vector<Op> BatchMatMulOps();
std::vector<Op> AttentionOps();
std::vector<Op> LayerNormalizationOps();
std::vector<Op> ElementwiseOps();
std::vector<Op> ShapeOps();
std::vector<Op> SliceOps();
std::vector<Op> GatherOps();
std::vector<Op> ImageOps();
std::vector<Op> ImageTransformOps();
std::vector<Op> BatchNormOps();
std::vector<Op> CollectiveOps();
std::vector<Op> ScanOps();

// Implements the gradient of Scan (ops/scan_gradient.cc).
Gradient ScanGradient(GradientContext& c);

bool IsFloat(DType dtype);
bool IsNumeric(DType dtype);  // float32, float64, int32, int64

// Returns InvalidArgument if a dimension is negative.
Status ExpectNoNegative(const Shape& shape);

// Infers the types of an op that writes a variable: such an op has no outputs. Checks that the
// attribute `variable` is set.
InferResult InferWrite(InferenceContext& context);

// Returns the gradient of an operand that was broadcast from `shape`. Sums `gradient`, the gradient
// of the broadcast value, over the axes along which the operand was repeated.
Output SumTo(Builder& b, Output gradient, const Shape& shape);

// Append an op without attributes.
Output Unary(Builder& b, std::string_view op, Output x);
Output Binary(Builder& b, std::string_view op, Output x, Output y);

}  // namespace tfjob::graph
