#include "runtime/graph/gradient_functions.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

Output SumToInput(GradientContext& c, Output gradient, int input) {
  return SumTo(c.b, gradient, c.b.shape(c.input(input)));
}

Output Zeros(GradientContext& c, Output like) {
  return Fill(c.b, c.b.dtype(like), c.b.shape(like), 0);
}

Output Times(GradientContext& c, Output x, double factor) {
  return Mul(c.b, x, Scalar(c.b, c.b.dtype(x), factor));
}

// Passes dy to input 0 where `first` holds, else to input 1.
Gradient Route(GradientContext& c, Output first) {
  const Output zeros = Zeros(c, c.dy());
  return {SumToInput(c, Select(c.b, first, c.dy(), zeros), 0),
          SumToInput(c, Select(c.b, first, zeros, c.dy()), 1)};
}

}  // namespace

Gradient NoGradient(GradientContext& c) {
  return Gradient(c.node.inputs.size());
}

Gradient IdentityGradient(GradientContext& c) {
  return {c.dy()};
}

Gradient AddGradient(GradientContext& c) {
  return {SumToInput(c, c.dy(), 0), SumToInput(c, c.dy(), 1)};
}

Gradient SubGradient(GradientContext& c) {
  return {SumToInput(c, c.dy(), 0), Neg(c.b, SumToInput(c, c.dy(), 1))};
}

Gradient MulGradient(GradientContext& c) {
  return {SumToInput(c, Mul(c.b, c.dy(), c.input(1)), 0),
          SumToInput(c, Mul(c.b, c.dy(), c.input(0)), 1)};
}

// z = x / y: d_x = dz / y, d_y = -dz z / y
Gradient DivGradient(GradientContext& c) {
  const Output d_x = Div(c.b, c.dy(), c.input(1));
  return {SumToInput(c, d_x, 0), Neg(c.b, SumToInput(c, Mul(c.b, d_x, c.output(0)), 1))};
}

Gradient MaximumGradient(GradientContext& c) {
  return Route(c, GreaterEqual(c.b, c.input(0), c.input(1)));
}

Gradient MinimumGradient(GradientContext& c) {
  return Route(c, GreaterEqual(c.b, c.input(1), c.input(0)));
}

// z = x^y: d_x = dz y x^(y-1), d_y = dz z log(x), which is taken as 0 where x ≤ 0
Gradient PowGradient(GradientContext& c) {
  const DType dtype = c.b.dtype(c.dy());
  const Output x = c.input(0);
  const Output y = c.input(1);
  const Output less_one = Sub(c.b, y, Scalar(c.b, dtype, 1));
  const Output d_x = Mul(c.b, c.dy(), Mul(c.b, y, Pow(c.b, x, less_one)));
  const Output positive = Greater(c.b, x, Scalar(c.b, dtype, 0));
  const Output safe = Select(c.b, positive, x, Scalar(c.b, dtype, 1));
  const Output d_y = Mul(c.b, c.dy(), Mul(c.b, c.output(0), Log(c.b, safe)));
  return {SumToInput(c, d_x, 0), SumToInput(c, d_y, 1)};
}

Gradient SelectGradient(GradientContext& c) {
  const Output zeros = Zeros(c, c.dy());
  return {Output(), SumToInput(c, Select(c.b, c.input(0), c.dy(), zeros), 1),
          SumToInput(c, Select(c.b, c.input(0), zeros, c.dy()), 2)};
}

Gradient NegGradient(GradientContext& c) {
  return {Neg(c.b, c.dy())};
}

Gradient ExpGradient(GradientContext& c) {
  return {Mul(c.b, c.dy(), c.output(0))};
}

Gradient LogGradient(GradientContext& c) {
  return {Div(c.b, c.dy(), c.input(0))};
}

Gradient SquareGradient(GradientContext& c) {
  return {Mul(c.b, c.dy(), Times(c, c.input(0), 2))};
}

// y = √x: d_x = dy / (2 y)
Gradient SqrtGradient(GradientContext& c) {
  return {Div(c.b, Times(c, c.dy(), 0.5), c.output(0))};
}

// y = 1/√x: d_x = -dy y³ / 2
Gradient RsqrtGradient(GradientContext& c) {
  const Output y = c.output(0);
  return {Mul(c.b, Times(c, c.dy(), -0.5), Mul(c.b, y, Square(c.b, y)))};
}

// dy sign(x), and 0 at 0
Gradient AbsGradient(GradientContext& c) {
  const Output zero = Scalar(c.b, c.b.dtype(c.dy()), 0);
  const Output below = Select(c.b, Less(c.b, c.input(0), zero), Neg(c.b, c.dy()), zero);
  return {Select(c.b, Greater(c.b, c.input(0), zero), c.dy(), below)};
}

// dy where x was not clipped
Gradient ClipGradient(GradientContext& c) {
  return {Select(c.b, Equal(c.b, c.input(0), c.output(0)), c.dy(), Zeros(c, c.dy()))};
}

Gradient CastGradient(GradientContext& c) {
  const DType from = c.b.dtype(c.input(0));
  const bool floats = from == DType::kFloat32 || from == DType::kFloat64;
  return {floats ? Cast(c.b, c.dy(), from) : Output()};
}

Gradient DropoutGradient(GradientContext& c) {
  return {c.b.Add("DropoutGrad", {c.dy(), c.input(1), c.input(2)}, c.node.attributes), Output(),
          Output()};
}

Gradient ReluGradient(GradientContext& c) {
  return {ReluGrad(c.b, c.dy(), c.output(0))};
}

Gradient SigmoidGradient(GradientContext& c) {
  return {SigmoidGrad(c.b, c.output(0), c.dy())};
}

Gradient TanhGradient(GradientContext& c) {
  return {TanhGrad(c.b, c.output(0), c.dy())};
}

}  // namespace tfjob::graph
