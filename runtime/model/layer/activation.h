// Declares the activation functions, with their Keras names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/model/layer/arguments.h"

namespace tfjob::model {

// Lists Keras' activation functions, which have their default arguments here; see
// keras.io/api/layers/activations.
enum class ActivationKind {
  kLinear,
  kRelu,
  kSigmoid,
  kTanh,
  kSoftmax,
  kCelu,
  kElu,
  kExponential,
  kGelu,
  kHardShrink,
  kHardSigmoid,
  kHardSilu,
  kHardTanh,
  kLeakyRelu,
  kLogSigmoid,
  kLogSoftmax,
  kMish,
  kRelu6,
  kSelu,
  kSilu,
  kSoftShrink,
  kSoftplus,
  kSoftsign,
  kSparsePlus,
  kSparseSigmoid,
  kSparsemax,
  kSquareplus,
  kTanhShrink,
};

std::string_view Name(ActivationKind kind);
// Returns the names in the order of the enum.
std::vector<std::string> ActivationNames();
// Reads the argument, which is a name or Keras 3's {class_name: function, config: name}. If the
// argument is absent or null, leaves `into` unchanged.
Status ReadActivation(Arguments& arguments, std::string_view argument, ActivationKind& into);
graph::Output Activate(graph::Builder& b, ActivationKind kind, graph::Output x);
// Returns InvalidArgument unless the activation can be applied to examples of this shape.
Status CheckActivation(ActivationKind kind, const Shape& shape);

// Returns the softmax of x [batch, …] over `axes`, which must be in ascending order and counted
// from 0.
graph::Output SoftmaxOver(graph::Builder& b, graph::Output x, const std::vector<int64_t>& axes);
// Applies `function`, which operates on the last axis, to `axes` instead. Returns the result.
graph::Output OverLastAxis(graph::Builder& b, graph::Output x, const std::vector<int64_t>& axes,
                           graph::Output (*function)(graph::Builder&, graph::Output));
// Returns Keras' sparsemax over the last axis: max(x - t, 0). The threshold t differs from the
// paper (Martins and Astudillo, "From Softmax to Sparsemax", 2016): Keras 3 uses the sum of all
// cumulative sums of the k largest elements instead of the last cumulative sum. The results
// therefore need not sum to 1, but models trained with Keras expect them.
graph::Output Sparsemax(graph::Builder& b, graph::Output x);
// Returns the number that replaces masked elements before a softmax in Keras, for the type of x.
double LargeNegative(const graph::Builder& b, graph::Output x);
// Returns the softmax over the elements whose mask is true (or above 0.5, if the mask is numeric),
// and 0 for all other elements. The mask is broadcast to x.
graph::Output MaskedSoftmax(graph::Builder& b, graph::Output x, graph::Output mask,
                            const std::vector<int64_t>& axes);

// Returns ELU: x for x > 0, and alpha·(exp(x) - 1) otherwise.
graph::Output Elu(graph::Builder& b, graph::Output x, double alpha);
// Returns x where |x| > threshold, and 0 elsewhere. NaN stays NaN.
graph::Output HardShrink(graph::Builder& b, graph::Output x, double threshold);
// Returns x shrunk towards 0 by the threshold: sign(x)·max(|x| - threshold, 0).
graph::Output SoftShrink(graph::Builder& b, graph::Output x, double threshold);
// Returns (x + √(x² + bend)) / 2.
graph::Output Squareplus(graph::Builder& b, graph::Output x, double bend);
// Returns x for x > 0, and slope·x otherwise.
graph::Output LeakyRelu(graph::Builder& b, graph::Output x, double slope);

}  // namespace tfjob::model
