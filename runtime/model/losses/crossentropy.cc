#include <numeric>
#include <utility>
#include <vector>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::losses {
namespace {

constexpr double kFocalAlpha = 0.25, kFocalGamma = 2;

// Returns the logits, in the shape of the prediction. As in Keras, if the prediction is the result
// of `op`, the logits are the operand of `op`, regardless of `from_logits`. Otherwise, returns the
// prediction itself if `from_logits` is true, and an invalid Output if it is false. Skips Reshapes
// that preserve the last axis, to which Softmax is applied; some layers reshape their outputs in
// this way.
Output LogitsOf(Builder& b, std::string_view op, Output prediction, bool from_logits) {
  const auto node_of = [&](Output x) -> const graph::Node& { return b.graph().node(x); };
  const Shape shape = b.shape(prediction);
  Output result = prediction;
  while (node_of(result).op == "Reshape" && shape.rank() > 0 &&
         b.shape(node_of(result).inputs[0]).rank() > 0 &&
         b.shape(node_of(result).inputs[0]).dim(-1) == shape.dim(-1)) {
    result = node_of(result).inputs[0];
  }
  if (node_of(result).op == op) {
    const Output logits = node_of(result).inputs[0];
    return b.shape(logits) == shape ? logits : Reshape(b, logits, shape);
  }
  return from_logits ? prediction : Output();
}

Output ClipProbability(Builder& b, Output p) {
  return ClipByValue(b, p, kEpsilon, 1 - kEpsilon);
}

// Reshapes x to a matrix with one row per place (loss.h), as the softmax ops require.
Output RowsOf(Builder& b, Output x) {
  const Shape& shape = b.shape(x);
  return shape.rank() == 2 ? x : Reshape(b, x, {-1, shape.dim(-1)});
}

// Reshapes losses, one per row, to the shape of the places.
Output AtPlaces(Builder& b, Output losses, Output prediction) {
  const Shape& shape = b.shape(prediction);
  return shape.rank() == 2 ? losses : Reshape(b, losses, PlacesOf(shape));
}

Output NegativeDot(Builder& b, Output y, Output logarithms) {
  return Neg(b, Sum(b, Mul(b, y, logarithms), {-1}));
}

Output SmoothBinary(Builder& b, const Loss& loss, Output y) {
  if (loss.label_smoothing == 0) return y;
  return Plus(b, Times(b, y, 1 - loss.label_smoothing), 0.5 * loss.label_smoothing);
}

Output SmoothCategorical(Builder& b, const Loss& loss, Output y) {
  if (loss.label_smoothing == 0) return y;
  const auto classes = static_cast<double>(b.shape(y).dim(-1));
  return Plus(b, Times(b, y, 1 - loss.label_smoothing), loss.label_smoothing / classes);
}

// Returns max(x, 0) - x y + log(1 + exp(-|x|)), computed in a way that makes the gradient at 0
// correct.
Output SigmoidCrossentropy(Builder& b, Output x, Output y) {
  const Output zero = Number(b, x, 0);
  const Output positive = GreaterEqual(b, x, BroadcastTo(b, zero, b.shape(x)));
  const Output minus = Neg(b, x);
  const Output above = Select(b, positive, x, BroadcastTo(b, zero, b.shape(x)));
  const Output tail = Log(b, Plus(b, Exp(b, Select(b, positive, minus, x)), 1));
  return Add(b, Sub(b, above, Mul(b, x, y)), tail);
}

// Returns the loss of each element.
Output BinaryTerms(Builder& b, bool from_logits, Output p, Output y) {
  const Output logits = LogitsOf(b, "Sigmoid", p, from_logits);
  if (logits.valid()) return SigmoidCrossentropy(b, logits, y);
  const Output clipped = ClipProbability(b, p);
  const Output yes = Mul(b, y, Log(b, clipped));
  const Output no = Mul(b, OneMinus(b, y), Log(b, OneMinus(b, clipped)));
  return Neg(b, Add(b, yes, no));
}

Output Normalized(Builder& b, Output p) {
  return ClipProbability(b, Div(b, p, Sum(b, p, {-1}, true)));
}

}  // namespace

Output SparseCategoricalCrossentropy(Builder& b, const Loss& loss, Output p, Output y) {
  // Places that do not count may have labels that are not classes. As in Keras, their predictions
  // are replaced as well, so the loss cannot find a softmax in the model and use its inputs.
  if (const Output counted = CountedPlaces(b, loss, y); counted.valid() && b.ok()) {
    const Loss rest{.kind = loss.kind, .from_logits = loss.from_logits};
    return Masked(b, counted,
                  SparseCategoricalCrossentropy(b, rest, Masked(b, counted, p),
                                                Select(b, counted, y, Number(b, y, 0))));
  }
  Output logits = LogitsOf(b, "Softmax", p, loss.from_logits);
  if (!logits.valid()) logits = Log(b, ClipProbability(b, p));
  if (b.shape(y).rank() != 1) y = Reshape(b, y, {-1});
  return AtPlaces(b, SparseSoftmaxCrossEntropyWithLogits(b, RowsOf(b, logits), y).loss, p);
}

Output CategoricalCrossentropy(Builder& b, const Loss& loss, Output p, Output y) {
  y = SmoothCategorical(b, loss, y);
  const Output logits = LogitsOf(b, "Softmax", p, loss.from_logits);
  if (!logits.valid()) return NegativeDot(b, y, Log(b, Normalized(b, p)));
  return AtPlaces(b, SoftmaxCrossEntropyWithLogits(b, RowsOf(b, logits), RowsOf(b, y)).loss, p);
}

Output ClippedCrossentropy(Builder& b, const Loss&, Output p, Output y) {
  return NegativeDot(b, y, Log(b, ClipByValue(b, p, 1e-10, 1)));
}

Output BinaryCrossentropy(Builder& b, const Loss& loss, Output p, Output y) {
  return MeanOfLast(b, BinaryTerms(b, loss.from_logits, p, SmoothBinary(b, loss, y)));
}

Output BinaryFocalCrossentropy(Builder& b, const Loss& loss, Output p, Output y) {
  y = SmoothBinary(b, loss, y);
  if (loss.from_logits) p = Sigmoid(b, p);
  const Output terms = BinaryTerms(b, /*from_logits=*/false, p, y);
  const Output right = Add(b, Mul(b, y, p), Mul(b, OneMinus(b, y), OneMinus(b, p)));
  Output focal =
      Mul(b, Pow(b, OneMinus(b, right), Number(b, p, loss.gamma.value_or(kFocalGamma))), terms);
  if (loss.apply_class_balancing) {
    const double alpha = loss.alpha.value_or(kFocalAlpha);
    const Output weight = Add(b, Times(b, y, alpha), Times(b, OneMinus(b, y), 1 - alpha));
    focal = Mul(b, weight, focal);
  }
  return MeanOfLast(b, focal);
}

Output CategoricalFocalCrossentropy(Builder& b, const Loss& loss, Output p, Output y) {
  y = SmoothCategorical(b, loss, y);
  if (loss.from_logits) p = Softmax(b, p);
  const Output q = Normalized(b, p);
  const Output factor = Pow(b, OneMinus(b, q), Number(b, q, loss.gamma.value_or(kFocalGamma)));
  return Times(b, NegativeDot(b, Mul(b, factor, y), Log(b, q)), loss.alpha.value_or(kFocalAlpha));
}

Output CategoricalGeneralizedCrossEntropy(Builder& b, const Loss& loss, Output p, Output y) {
  std::vector<int64_t> column = b.shape(y).dims();
  column.push_back(1);
  Tensor classes(DType::kInt64, Shape({b.shape(p).dim(-1)}));
  std::iota(classes.data<int64_t>().begin(), classes.data<int64_t>().end(), 0);
  const Output own =
      Equal(b, Reshape(b, y, Shape(std::move(column))), Const(b, std::move(classes)));
  const Output probability = Sum(b, Mul(b, p, Cast(b, own, b.dtype(p))), {-1});
  return Times(b, OneMinus(b, Pow(b, probability, Number(b, p, loss.q))), 1 / loss.q);
}

}  // namespace tfjob::model::losses
