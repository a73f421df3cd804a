#include "runtime/graph/ops.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::losses {
namespace {

Output IsEqualTo(Builder& b, Output x, double value) {
  return Cast(b, Equal(b, x, Number(b, x, value)), b.dtype(x));
}

// Replaces the labels 0 and 1 with -1 and 1, unless the batch contains any other label.
Output Signs(Builder& b, Output y) {
  const Output binary = Min(b, Maximum(b, IsEqualTo(b, y, 0), IsEqualTo(b, y, 1)), {});
  return Add(b, y, Mul(b, Plus(b, y, -1), binary));
}

// Returns the loss of each element.
Output HingeTerms(Builder& b, Output p, Output y) {
  return Maximum(b, OneMinus(b, Mul(b, Signs(b, y), p)), Number(b, p, 0));
}

}  // namespace

Output Hinge(Builder& b, const Loss&, Output p, Output y) {
  return MeanOfLast(b, HingeTerms(b, p, y));
}

Output SquaredHinge(Builder& b, const Loss&, Output p, Output y) {
  return MeanOfLast(b, Square(b, HingeTerms(b, p, y)));
}

Output CategoricalHinge(Builder& b, const Loss&, Output p, Output y) {
  const Output right = Sum(b, Mul(b, y, p), {-1});
  const Output wrong = Max(b, Mul(b, OneMinus(b, y), p), {-1});
  return Maximum(b, Plus(b, Sub(b, wrong, right), 1), Number(b, p, 0));
}

}  // namespace tfjob::model::losses
