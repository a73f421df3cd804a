// Declares the activation functions, with their Keras names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/model/layer/arguments.h"

namespace tfjob::model {

// Keras' activation functions with their default arguments; see keras.io/api/layers/activations.
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
// Reads the argument, which is a name or Keras 3's {class_name: function, config: name}. Leaves
// `into` unchanged if the argument is absent or null.
Status ReadActivation(Arguments& arguments, std::string_view argument, ActivationKind& into);
graph::Output Activate(graph::Builder& b, ActivationKind kind, graph::Output x);
// Returns InvalidArgument unless the activation can be applied to examples of this shape.
Status CheckActivation(ActivationKind kind, const Shape& shape);

// Returns the softmax of x [batch, …] over these axes, which count from 0 and are in ascending
// order.
graph::Output SoftmaxOver(graph::Builder& b, graph::Output x, const std::vector<int64_t>& axes);
// Applies `function`, which works on the last axis, over these axes instead, and returns the
// result.
graph::Output OverLastAxis(graph::Builder& b, graph::Output x, const std::vector<int64_t>& axes,
                           graph::Output (*function)(graph::Builder&, graph::Output));
// Returns Keras' sparsemax over the last axis: max(x - t, 0). Keras 3 adds up the cumulative sums
// of the k largest elements instead of taking the last one, so its t differs from that in the paper
// (Martins and Astudillo, "From Softmax to Sparsemax", 2016), and the results need not sum to 1.
// Models trained with Keras expect these values.
graph::Output Sparsemax(graph::Builder& b, graph::Output x);
// Returns the number that Keras gives masked elements before a softmax, in the type of x.
double LargeNegative(const graph::Builder& b, graph::Output x);
// Returns the softmax of the elements for which the mask is true (or above 0.5, for a mask of
// numbers), and 0 for all others. The mask broadcasts to x.
graph::Output MaskedSoftmax(graph::Builder& b, graph::Output x, graph::Output mask,
                            const std::vector<int64_t>& axes);

// Returns ELU: x for x > 0, and alpha·(exp(x) - 1) otherwise.
graph::Output Elu(graph::Builder& b, graph::Output x, double alpha);
// Returns x where |x| > threshold, and 0 elsewhere. NaN stays NaN.
graph::Output HardShrink(graph::Builder& b, graph::Output x, double threshold);
// Returns x, moved towards 0 by at most the threshold: sign(x)·max(|x| - threshold, 0).
graph::Output SoftShrink(graph::Builder& b, graph::Output x, double threshold);
// Returns (x + √(x² + bend)) / 2.
graph::Output Squareplus(graph::Builder& b, graph::Output x, double bend);
// Returns x for x > 0, and slope·x otherwise.
graph::Output LeakyRelu(graph::Builder& b, graph::Output x, double slope);

}  // namespace tfjob::model
