#include <numbers>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/vector_normalization.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::losses {
namespace {

Output LogOfOneMore(Builder& b, Output x) {
  return Log(b, Plus(b, Maximum(b, x, Number(b, x, kEpsilon)), 1));
}

Output UnitVector(Builder& b, Output x) {
  return layers::Normalized(b, x, {-1}, kEpsilon);
}

}  // namespace

Output MeanSquaredError(Builder& b, const Loss&, Output p, Output y) {
  return MeanOfLast(b, Square(b, Sub(b, p, y)));
}

Output MeanAbsoluteError(Builder& b, const Loss&, Output p, Output y) {
  return MeanOfLast(b, Abs(b, Sub(b, p, y)));
}

Output MeanAbsolutePercentageError(Builder& b, const Loss&, Output p, Output y) {
  const Output size = Maximum(b, Abs(b, y), Number(b, y, kEpsilon));
  return Times(b, MeanOfLast(b, Abs(b, Div(b, Sub(b, y, p), size))), 100);
}

Output MeanSquaredLogarithmicError(Builder& b, const Loss&, Output p, Output y) {
  return MeanOfLast(b, Square(b, Sub(b, LogOfOneMore(b, p), LogOfOneMore(b, y))));
}

Output Huber(Builder& b, const Loss& loss, Output p, Output y) {
  const Output error = Sub(b, p, y);
  const Output size = Abs(b, error);
  const Output square = Times(b, Square(b, error), 0.5);
  const Output line = Plus(b, Times(b, size, loss.delta), -0.5 * loss.delta * loss.delta);
  return MeanOfLast(b, Select(b, Greater(b, size, Number(b, size, loss.delta)), line, square));
}

Output LogCosh(Builder& b, const Loss&, Output p, Output y) {
  const Output error = Sub(b, p, y);
  const Output sum = Add(b, error, LogOfOneMoreThanExp(b, Times(b, error, -2)));
  return MeanOfLast(b, Plus(b, sum, -std::numbers::ln2));
}

Output Poisson(Builder& b, const Loss&, Output p, Output y) {
  return MeanOfLast(b, Sub(b, p, Mul(b, y, Log(b, Plus(b, p, kEpsilon)))));
}

Output KlDivergence(Builder& b, const Loss&, Output p, Output y) {
  const Output q = ClipByValue(b, y, kEpsilon, 1);
  const Output ratio = Div(b, q, ClipByValue(b, p, kEpsilon, 1));
  return Sum(b, Mul(b, q, Log(b, ratio)), {-1});
}

Output CosineSimilarity(Builder& b, const Loss&, Output p, Output y) {
  return Neg(b, Sum(b, Mul(b, UnitVector(b, y), UnitVector(b, p)), {-1}));
}

}  // namespace tfjob::model::losses
