#include "runtime/graph/gelu.h"

#include <cmath>
#include <numbers>

#include "runtime/graph/ops.h"

namespace tfjob::graph {

Output ApproximateGelu(Builder& b, Output x) {
  const auto number = [&](double value) { return Scalar(b, b.dtype(x), value); };
  const Output cubic = Add(b, x, Mul(b, Mul(b, x, Square(b, x)), number(0.044715)));
  const Output tanh = Tanh(b, Mul(b, cubic, number(std::sqrt(2 / std::numbers::pi))));
  const Output half = Mul(b, x, number(0.5));
  return Mul(b, half, Add(b, tanh, number(1)));
}

}  // namespace tfjob::graph
