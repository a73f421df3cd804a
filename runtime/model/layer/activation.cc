#include "runtime/model/layer/activation.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "runtime/base/did_you_mean.h"
#include "runtime/graph/ops.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

Output Number(Builder& b, Output like, double value) {
  return Scalar(b, b.dtype(like), value);
}
Output Plus(Builder& b, Output x, double value) {
  return Add(b, x, Number(b, x, value));
}
Output Times(Builder& b, Output x, double factor) {
  return Mul(b, x, Number(b, x, factor));
}

// Returns log(1 + x) for x from 0 to 1. Uses a power series for x below 1/16, because computing 1 +
// x would lose too many digits of x. The first omitted term is less than 1e-8·x.
Output LogOfOnePlus(Builder& b, Output x) {
  Output sum = Number(b, x, -1.0 / 6);
  for (int n = 5; n >= 1; --n) sum = Plus(b, Mul(b, sum, x), (n % 2 == 0 ? -1.0 : 1.0) / n);
  return Select(b, Less(b, x, Number(b, x, 1.0 / 16)), Mul(b, sum, x), Log(b, Plus(b, x, 1)));
}

// Returns log(1 + exp(x)) without overflow. Where x is 0, the gradients of the two terms are 1 and
// -1/2.
Output Softplus(Builder& b, Output x) {
  const Output tail = LogOfOnePlus(b, Exp(b, Minimum(b, Neg(b, x), x)));
  return Add(b, Maximum(b, x, Number(b, x, 0)), tail);
}

// Returns x·Φ(x), where Φ is the cumulative distribution function of the standard normal
// distribution.
Output Gelu(Builder& b, Output x) {
  const Output erf = Erf(b, Times(b, x, 1 / std::numbers::sqrt2));
  return Mul(b, Times(b, x, 0.5), Plus(b, erf, 1));
}

Output HardSigmoid(Builder& b, Output x) {
  return ClipByValue(b, Plus(b, Times(b, x, 1.0 / 6), 0.5), 0, 1);
}

// Returns SELU (Klambauer et al., "Self-Normalizing Neural Networks", 2017). Where x is 0, the
// gradient is the scale, as in TensorFlow.
Output Selu(Builder& b, Output x) {
  constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;
  const Output zero = Number(b, x, 0);
  const Output below = Times(b, Plus(b, Exp(b, Minimum(b, x, zero)), -1), kAlpha);
  return Times(b, Select(b, Less(b, x, zero), below, x), kScale);
}

// Returns 0 for x below -1, x for x above 1, and (x + 1)²/4 in between.
Output SparsePlus(Builder& b, Output x) {
  const Output middle = Times(b, Square(b, Plus(b, ClipByValue(b, x, -1, 1), 1)), 0.25);
  return Add(b, middle, Relu(b, Plus(b, x, -1)));
}

struct Function {
  std::string_view name;
  Output (*apply)(Builder&, Output);
};

// Listed in the order of ActivationKind.
constexpr Function kActivations[] = {
    {"linear", [](Builder&, Output x) { return x; }},
    {"relu", graph::Relu},
    {"sigmoid", graph::Sigmoid},
    {"tanh", graph::Tanh},
    {"softmax", graph::Softmax},
    {"celu", [](Builder& b, Output x) { return Elu(b, x, 1); }},
    {"elu", [](Builder& b, Output x) { return Elu(b, x, 1); }},
    {"exponential", graph::Exp},
    {"gelu", Gelu},
    {"hard_shrink", [](Builder& b, Output x) { return HardShrink(b, x, 0.5); }},
    {"hard_sigmoid", HardSigmoid},
    {"hard_silu", [](Builder& b, Output x) { return Mul(b, x, HardSigmoid(b, x)); }},
    {"hard_tanh", [](Builder& b, Output x) { return ClipByValue(b, x, -1, 1); }},
    {"leaky_relu", [](Builder& b, Output x) { return LeakyRelu(b, x, 0.2); }},
    {"log_sigmoid", [](Builder& b, Output x) { return Neg(b, Softplus(b, Neg(b, x))); }},
    {"log_softmax", graph::LogSoftmax},
    {"mish", [](Builder& b, Output x) { return Mul(b, x, Tanh(b, Softplus(b, x))); }},
    {"relu6", [](Builder& b, Output x) { return Minimum(b, Relu(b, x), Number(b, x, 6)); }},
    {"selu", Selu},
    {"silu", [](Builder& b, Output x) { return Mul(b, x, Sigmoid(b, x)); }},
    {"soft_shrink", [](Builder& b, Output x) { return SoftShrink(b, x, 0.5); }},
    {"softplus", Softplus},
    {"softsign", [](Builder& b, Output x) { return Div(b, x, Plus(b, Abs(b, x), 1)); }},
    {"sparse_plus", SparsePlus},
    {"sparse_sigmoid",
     [](Builder& b, Output x) { return ClipByValue(b, Times(b, Plus(b, x, 1), 0.5), 0, 1); }},
    {"sparsemax", Sparsemax},
    {"squareplus", [](Builder& b, Output x) { return Squareplus(b, x, 4); }},
    {"tanh_shrink", [](Builder& b, Output x) { return Sub(b, x, Tanh(b, x)); }},
};

// Lists other names that Keras accepts.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {{"swish", "silu"},
                                                                      {"hard_swish", "hard_silu"}};

}  // namespace

std::string_view Name(ActivationKind kind) {
  return kActivations[static_cast<size_t>(kind)].name;
}

std::vector<std::string> ActivationNames() {
  std::vector<std::string> names;
  for (const Function& function : kActivations) names.emplace_back(function.name);
  return names;
}

Status ReadActivation(Arguments& arguments, std::string_view argument, ActivationKind& into) {
  JsonField field = arguments[argument];
  if (!field.present()) return OkStatus();
  if (field.value()->is_object() && field["config"].present()) field = field["config"];
  const StatusOr<std::string> given = field.String();
  if (!given.ok()) return arguments.Named(given.status());
  std::string_view name = *given;
  for (const auto& [alias, meaning] : kAliases) {
    if (name == alias) name = meaning;
  }
  const auto found = std::ranges::find(kActivations, name, &Function::name);
  if (found != std::end(kActivations)) {
    into = static_cast<ActivationKind>(found - std::begin(kActivations));
    return OkStatus();
  }
  return InvalidArgument(arguments.subject(), ": ", field.path(), ": activation ", *given,
                         " is not supported", DidYouMean(*given, ActivationNames()));
}

Output Activate(Builder& b, ActivationKind kind, Output x) {
  if (!x.valid()) return x;
  return kActivations[static_cast<size_t>(kind)].apply(b, x);
}

Status CheckActivation(ActivationKind kind, const Shape& shape) {
  const bool along_rows = kind == ActivationKind::kSoftmax || kind == ActivationKind::kLogSoftmax ||
                          kind == ActivationKind::kSparsemax;
  if (!along_rows || shape.rank() > 0) return OkStatus();
  return InvalidArgument(Name(kind), " expects examples of rank 1 or more, got shape ",
                         shape.ToString());
}

Output SoftmaxOver(Builder& b, Output x, const std::vector<int64_t>& axes) {
  return OverLastAxis(b, x, axes, graph::Softmax);
}

// Moves the axes to the end and merges them, applies the function, and then restores the axes.
Output OverLastAxis(Builder& b, Output x, const std::vector<int64_t>& axes,
                    Output (*function)(Builder&, Output)) {
  if (!x.valid()) return x;
  const Shape shape = b.shape(x);
  if (axes == std::vector<int64_t>{shape.rank() - 1}) return function(b, x);
  std::vector<int64_t> order, dims;
  int64_t size = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (std::ranges::find(axes, d) == axes.end()) order.push_back(d);
  }
  for (int64_t d : order) dims.push_back(shape.dim(static_cast<int>(d)));
  for (int64_t axis : axes) size *= shape.dim(static_cast<int>(axis));
  order.insert(order.end(), axes.begin(), axes.end());
  dims.push_back(size);
  const bool moves = !std::ranges::is_sorted(order);
  const Output moved = moves ? Transpose(b, x, order) : x;
  Output y = Reshape(b, function(b, Reshape(b, moved, Shape(dims))), b.shape(moved));
  if (!moves) return y;
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return Transpose(b, y, back);
}

// Compares all pairs of elements instead of sorting them like Keras, so time and memory are
// quadratic in the length of the axis. An element belongs to the support if the sum of the
// differences between all larger elements and this element is less than 1. `smaller` is the
// position of an element in the support in ascending order, counted from 1. Equal elements share
// the mean of their positions. This position is the number of times that Keras' sum of cumulative
// sums contains the element. No gradient flows through `support` and `smaller`.
Output Sparsemax(Builder& b, Output x) {
  std::vector<int64_t> column = b.shape(x).dims(), row = column;
  column.push_back(1);
  row.insert(row.end() - 1, 1);
  const Output own = Reshape(b, x, Shape(column)), other = Reshape(b, x, Shape(row));
  const Output excess = Sum(b, Relu(b, Sub(b, other, own)), {-1});
  const Output supports = Less(b, excess, Number(b, x, 1));
  const Output support = Cast(b, supports, b.dtype(x));
  const Output below = Cast(b, Less(b, other, own), b.dtype(x));
  const Output equal = Times(b, Cast(b, Equal(b, other, own), b.dtype(x)), 0.5);
  const Output counted = Mul(b, Add(b, below, equal), Reshape(b, support, Shape(row)));
  const Output smaller = Plus(b, Sum(b, counted, {-1}), 0.5);
  const Output values = Select(b, supports, x, Number(b, x, 0));
  const Output total = Plus(b, Sum(b, Mul(b, values, smaller), {-1}, true), -1);
  const Output threshold = Div(b, total, Sum(b, support, {-1}, true));
  return Maximum(b, Sub(b, x, threshold), Number(b, x, 0));
}

double LargeNegative(const Builder& b, Output x) {
  return b.dtype(x) == DType::kFloat16 ? -3e4 : -1e9;
}

// Like Keras, replaces masked elements with a large negative number before the softmax. Sets them
// to 0 after the softmax, which makes a difference only if all elements are masked.
Output MaskedSoftmax(Builder& b, Output x, Output mask, const std::vector<int64_t>& axes) {
  if (b.dtype(mask) != DType::kBool)
    mask = Greater(b, Cast(b, mask, b.dtype(x)), Number(b, x, 0.5));
  const Output y = SoftmaxOver(b, Select(b, mask, x, Number(b, x, LargeNegative(b, x))), axes);
  return Select(b, mask, y, Number(b, x, 0));
}

Output Elu(Builder& b, Output x, double alpha) {
  // Clip x to at most 0. Otherwise, the gradient of exp would overflow where x is large, even
  // though this result is not used.
  const Output below = Plus(b, Exp(b, ClipByValue(b, x, -INFINITY, 0)), -1);
  return Add(b, Relu(b, x), Times(b, below, alpha));
}

Output HardShrink(Builder& b, Output x, double threshold) {
  const Output small = GreaterEqual(b, Number(b, x, threshold), Abs(b, x));
  return Select(b, small, Number(b, x, 0), x);
}

Output SoftShrink(Builder& b, Output x, double threshold) {
  return Sub(b, x, ClipByValue(b, x, -threshold, threshold));
}

Output Squareplus(Builder& b, Output x, double bend) {
  return Times(b, Add(b, x, Sqrt(b, Plus(b, Square(b, x), bend))), 0.5);
}

Output LeakyRelu(Builder& b, Output x, double slope) {
  return Select(b, Greater(b, x, Number(b, x, 0)), x, Times(b, x, slope));
}

}  // namespace tfjob::model
