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

Output LabelsLike(Builder& b, Output labels, Output prediction) {
  const Output floats = Cast(b, labels, b.dtype(prediction));
  const Shape& shape = b.shape(prediction);
  return b.shape(floats) == shape ? floats : Reshape(b, floats, shape);
}

}  // namespace tfjob::model::losses
