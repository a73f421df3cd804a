#include <algorithm>

#include "runtime/graph/ops.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::losses {
namespace {

constexpr double kTverskyAlpha = 0.5;

Output SumOver(Builder& b, const Loss& loss, Output x) {
  return Sum(b, x, loss.axes);
}

// Combines the losses, which have one element for each combination of the axes that SumOver leaves,
// into one value per example if they depend on all examples together. Otherwise, returns them.
Output PerExample(Builder& b, const Loss& loss, Output losses, Output p) {
  if (!b.ok() || !IsOfBatch(loss, b.shape(p).rank())) return losses;
  const Output number = loss.sum ? Sum(b, losses, {}) : Mean(b, losses, {});
  return BroadcastTo(b, number, Shape({b.shape(p).dim(0)}));
}

}  // namespace

Output Dice(Builder& b, const Loss& loss, Output p, Output y) {
  const Output both = SumOver(b, loss, Mul(b, y, p));
  const Output sizes = Add(b, SumOver(b, loss, y), SumOver(b, loss, p));
  const Output overlap = Div(b, Times(b, both, 2), Plus(b, sizes, kEpsilon));
  return PerExample(b, loss, OneMinus(b, overlap), p);
}

Output Tversky(Builder& b, const Loss& loss, Output p, Output y) {
  const Output both = SumOver(b, loss, Mul(b, y, p));
  const Output missing = SumOver(b, loss, Mul(b, OneMinus(b, p), y));
  const Output wrong = SumOver(b, loss, Mul(b, p, OneMinus(b, y)));
  const Output weighted =
      Add(b, Times(b, missing, loss.alpha.value_or(kTverskyAlpha)), Times(b, wrong, loss.beta));
  const Output overlap = Div(b, both, Plus(b, Add(b, both, weighted), kEpsilon));
  return PerExample(b, loss, OneMinus(b, overlap), p);
}

}  // namespace tfjob::model::losses
