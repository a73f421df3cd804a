#include "runtime/graph/ops.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::losses {

Output Number(Builder& b, Output like, double value) {
  return Scalar(b, b.dtype(like), value);
}
Output Plus(Builder& b, Output x, double value) {
  return Add(b, x, Number(b, x, value));
}
Output Times(Builder& b, Output x, double value) {
  return Mul(b, x, Number(b, x, value));
}
Output OneMinus(Builder& b, Output x) {
  return Sub(b, Number(b, x, 1), x);
}

Output MeanOfLast(Builder& b, Output x) {
  return b.shape(x).rank() == 1 ? x : Mean(b, x, {-1});
}

Output LogOfOneMoreThanExp(Builder& b, Output x) {
  const Output tail = Log(b, Plus(b, Exp(b, Minimum(b, Neg(b, x), x)), 1));
  return Add(b, Maximum(b, x, Number(b, x, 0)), tail);
}

Output LogSumExp(Builder& b, const std::vector<Output>& elements) {
  Output most = elements[0], sum;
  for (size_t i = 1; i < elements.size(); ++i) most = Maximum(b, most, elements[i]);
  for (const Output x : elements) {
    const Output term = Exp(b, Sub(b, x, most));
    sum = sum.valid() ? Add(b, sum, term) : term;
  }
  return Add(b, most, Log(b, sum));
}

Output LabelsLike(Builder& b, Output labels, Output prediction) {
  const Output floats = Cast(b, labels, b.dtype(prediction));
  const Shape& shape = b.shape(prediction);
  return b.shape(floats) == shape ? floats : Reshape(b, floats, shape);
}

}  // namespace tfjob::model::losses
