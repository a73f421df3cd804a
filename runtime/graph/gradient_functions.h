// Gradient functions of the op table. Each returns one gradient per input, of that input's type. A
// comment beside each body gives the formula, with d_ for "d loss / d".
#pragma once

#include "runtime/graph/op.h"

namespace tfjob::graph {

using Gradient = std::vector<Output>;

// No gradient flows through: integers, booleans, comparisons, sources.
Gradient NoGradient(GradientContext& c);

Gradient IdentityGradient(GradientContext& c);
Gradient MatMulGradient(GradientContext& c);
Gradient BiasAddGradient(GradientContext& c);
Gradient ReluGradient(GradientContext& c);
Gradient SigmoidGradient(GradientContext& c);
Gradient TanhGradient(GradientContext& c);
Gradient SoftmaxGradient(GradientContext& c);
Gradient LogSoftmaxGradient(GradientContext& c);
Gradient SparseCrossEntropyGradient(GradientContext& c);
Gradient CrossEntropyGradient(GradientContext& c);

Gradient AddGradient(GradientContext& c);
Gradient SubGradient(GradientContext& c);
Gradient MulGradient(GradientContext& c);
Gradient DivGradient(GradientContext& c);
Gradient MaximumGradient(GradientContext& c);
Gradient MinimumGradient(GradientContext& c);
Gradient PowGradient(GradientContext& c);
Gradient SelectGradient(GradientContext& c);
Gradient NegGradient(GradientContext& c);
Gradient ExpGradient(GradientContext& c);
Gradient LogGradient(GradientContext& c);
Gradient SquareGradient(GradientContext& c);
Gradient SqrtGradient(GradientContext& c);
Gradient RsqrtGradient(GradientContext& c);
Gradient AbsGradient(GradientContext& c);
Gradient ClipGradient(GradientContext& c);
Gradient CastGradient(GradientContext& c);
Gradient DropoutGradient(GradientContext& c);

Gradient SumGradient(GradientContext& c);
Gradient MeanGradient(GradientContext& c);
Gradient ExtremeGradient(GradientContext& c);  // Max and Min
Gradient ReshapeGradient(GradientContext& c);
Gradient TransposeGradient(GradientContext& c);
Gradient BroadcastToGradient(GradientContext& c);

// Returns the gradient of an operand that was broadcast from `shape`, summed over the axes along
// which it was repeated.
Output SumTo(Builder& b, Output gradient, const Shape& shape);

}  // namespace tfjob::graph
