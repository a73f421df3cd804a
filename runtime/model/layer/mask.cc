#include "runtime/model/layer/mask.h"

#include <algorithm>

#include "runtime/graph/ops.h"

namespace tfjob::model {

using graph::Builder;
using graph::Output;

Output NotEqual(Builder& b, Output x, double value) {
  const Output equal = Equal(b, x, Scalar(b, b.dtype(x), value));
  return Equal(b, equal, Scalar(b, DType::kBool, 0));
}

Output Or(Builder& b, Output x, Output y) {
  return Select(b, x, Scalar(b, DType::kBool, 1), y);
}

Output AnyOfLastAxis(Builder& b, Output x) {
  return Cast(b, Max(b, Cast(b, x, DType::kInt32), {-1}), DType::kBool);
}

Output AlongSteps(Builder& b, Output mask, Output x) {
  std::vector<int64_t> dims = b.shape(mask).dims();
  const std::vector<int64_t>& wanted = b.shape(x).dims();
  if (dims.size() > wanted.size() || !std::equal(dims.begin(), dims.end(), wanted.begin())) {
    return b.Fail(InvalidArgument("a mask of shape ", b.shape(mask).ToString(),
                                  " does not fit a value of shape ", b.shape(x).ToString(),
                                  ": a mask has the value's first axes"));
  }
  if (dims.size() == wanted.size()) return mask;
  dims.resize(wanted.size(), 1);
  return Reshape(b, mask, Shape(std::move(dims)));
}

Output Masked(Builder& b, Output mask, Output x) {
  return Select(b, AlongSteps(b, mask, x), x, Scalar(b, b.dtype(x), 0));
}

}  // namespace tfjob::model
