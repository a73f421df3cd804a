// Implements elementwise arithmetic, comparisons, activations and dropout.
#include <numbers>
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

constexpr int kAnyNumber = 64;
constexpr bool kElementwise = true;
constexpr Effect kNoEffect = Effect::kNone;

// ---- inference

Status ExpectFloat(const TensorType& type) {
  return IsFloat(type.dtype) ? OkStatus() : InvalidArgument("expected a float type");
}

Status ExpectNumeric(const TensorType& type) {
  return IsNumeric(type.dtype) ? OkStatus()
                               : InvalidArgument("expected float32, float64, int32 or int64");
}

Status ExpectEqualTypes(const InferenceContext& context, size_t i, size_t j) {
  return context.inputs[i].dtype == context.inputs[j].dtype
             ? OkStatus()
             : InvalidArgument("expected inputs of one dtype; add a Cast");
}

StatusOr<Shape> Broadcast(const InferenceContext& context) {
  return BroadcastShapes(context.inputs[0].shape, context.inputs[1].shape);
}

InferResult InferSame(InferenceContext& context) {
  return std::vector{context.inputs[0]};
}

InferResult InferSameNumeric(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectNumeric(context.inputs[0]));
  return InferSame(context);
}

InferResult InferSameFloat(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  return InferSame(context);
}

InferResult InferClip(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  const double* low = context.attributes.Find<double>("clip_value_min");
  const double* high = context.attributes.Find<double>("clip_value_max");
  if (low == nullptr || high == nullptr || !(*low <= *high)) {
    return InvalidArgument("expected attributes clip_value_min ≤ clip_value_max");
  }
  return InferSame(context);
}

InferResult InferGradOfSame(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  if (context.inputs[0] != context.inputs[1]) {
    return InvalidArgument("expected two inputs of one dtype and shape");
  }
  return InferSame(context);
}

InferResult InferBinaryNumeric(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectNumeric(context.inputs[0]));
  RETURN_IF_ERROR(ExpectEqualTypes(context, 0, 1));
  ASSIGN_OR_RETURN(Shape shape, Broadcast(context));
  return std::vector{TensorType{context.inputs[0].dtype, std::move(shape)}};
}

InferResult InferBinaryFloat(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  return InferBinaryNumeric(context);
}

InferResult InferEqual(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectEqualTypes(context, 0, 1));
  ASSIGN_OR_RETURN(Shape shape, Broadcast(context));
  return std::vector{TensorType{DType::kBool, std::move(shape)}};
}

InferResult InferCompare(InferenceContext& context) {
  if (context.inputs[0].dtype == DType::kBool) return InvalidArgument("expected numbers");
  return InferEqual(context);
}

InferResult InferSelect(InferenceContext& context) {
  if (context.inputs[0].dtype != DType::kBool) {
    return InvalidArgument("expected a bool condition as input 0");
  }
  RETURN_IF_ERROR(ExpectEqualTypes(context, 1, 2));
  ASSIGN_OR_RETURN(Shape values, BroadcastShapes(context.inputs[1].shape, context.inputs[2].shape));
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(context.inputs[0].shape, values));
  return std::vector{TensorType{context.inputs[1].dtype, std::move(shape)}};
}

InferResult InferCast(InferenceContext& context) {
  const DType* dtype = context.attributes.Find<DType>("dtype");
  if (dtype == nullptr) return InvalidArgument("expected an attribute dtype");
  return std::vector{TensorType{*dtype, context.inputs[0].shape}};
}

InferResult InferDropout(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  const TensorType scalar{DType::kInt64, {}};
  if (context.inputs[1] != scalar || context.inputs[2] != scalar) {
    return InvalidArgument("expected step and seed as int64[]");
  }
  const double rate = context.attributes.Get<double>("rate", -1);
  if (!(rate >= 0 && rate < 1)) {
    return InvalidArgument("expected an attribute rate of at least 0 and below 1, got ", rate);
  }
  return InferSame(context);
}

// Checks the operands of a program that converts between types and, with the attribute random, also
// reads a step and a seed.
Status ExpectMixedTypes(const InferenceContext& context, DType output) {
  const auto mixes = [](DType dtype) { return dtype == DType::kFloat32 || IsHalf(dtype); };
  if (!mixes(output)) return InvalidArgument("expected an attribute dtype: float32 or a half type");
  const size_t words = context.attributes.Get("random", false) ? 2 : 0;
  if (context.inputs.size() <= words)
    return InvalidArgument("expected inputs before step and seed");
  const size_t floats = context.inputs.size() - words;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const TensorType& input = context.inputs[i];
    if (i < floats ? mixes(input.dtype) : input == TensorType{DType::kInt64, {}}) continue;
    return InvalidArgument("input ", i, " is ", input.ToString(), ": expected ",
                           i < floats ? "float32 or a half type" : "int64[]");
  }
  return OkStatus();
}

InferResult InferFusedElementwise(InferenceContext& context) {
  const Shape* shape = context.attributes.Find<Shape>("shape");
  if (shape == nullptr || context.attributes.Find<std::string>("program") == nullptr) {
    return InvalidArgument("expected attributes program and shape");
  }
  RETURN_IF_ERROR(ExpectNoNegative(*shape));
  const DType* const dtype = context.attributes.Find<DType>("dtype");
  if (dtype != nullptr) {
    RETURN_IF_ERROR(ExpectMixedTypes(context, *dtype));
    return std::vector{TensorType{*dtype, *shape}};
  }
  for (size_t i = 0; i < context.inputs.size(); ++i)
    RETURN_IF_ERROR(ExpectEqualTypes(context, 0, i));
  return std::vector{TensorType{context.inputs[0].dtype, *shape}};
}

// ---- gradients

Output SumToInput(GradientContext& c, Output gradient, int input) {
  return SumTo(c.b, gradient, c.b.shape(c.input(input)));
}

Output Zeros(GradientContext& c, Output like) {
  return Fill(c.b, c.b.dtype(like), c.b.shape(like), 0);
}

Output Times(GradientContext& c, Output x, double factor) {
  return Mul(c.b, x, Scalar(c.b, c.b.dtype(x), factor));
}

// Routes the elements of dy: to input 0 where `first` is true, and to input 1 elsewhere.
Gradient Route(GradientContext& c, Output first) {
  const Output zeros = Zeros(c, c.dy());
  return {SumToInput(c, Select(c.b, first, c.dy(), zeros), 0),
          SumToInput(c, Select(c.b, first, zeros, c.dy()), 1)};
}

// Returns dy, or no gradient if the attribute stop_gradient is set.
Gradient IdentityGradient(GradientContext& c) {
  if (c.node.attributes.Get("stop_gradient", false)) return NoGradient(c);
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

// z = x^y: d_x = dz y x^(y-1), d_y = dz z log(x), where log(x) is replaced with 0 if x ≤ 0
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

// d_x = dy 2/√π exp(-x²)
Gradient ErfGradient(GradientContext& c) {
  const Output bell = Exp(c.b, Neg(c.b, Square(c.b, c.input(0))));
  return {Mul(c.b, c.dy(), Times(c, bell, 2 * std::numbers::inv_sqrtpi))};
}

Gradient SinGradient(GradientContext& c) {
  return {Mul(c.b, c.dy(), Cos(c.b, c.input(0)))};
}

Gradient CosGradient(GradientContext& c) {
  return {Neg(c.b, Mul(c.b, c.dy(), Sin(c.b, c.input(0))))};
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

// d_x = dy sign(x), where sign(0) = 0 and sign(NaN) = NaN. If x is 0 or NaN, sign(x) equals x.
Gradient AbsGradient(GradientContext& c) {
  const Output x = c.input(0);
  const Output zero = Scalar(c.b, c.b.dtype(c.dy()), 0);
  const Output below = Select(c.b, Less(c.b, x, zero), Neg(c.b, c.dy()), Mul(c.b, c.dy(), x));
  return {Select(c.b, Greater(c.b, x, zero), c.dy(), below)};
}

// d_x is dy where x was not clipped, and 0 elsewhere. NaN counts as clipped, as in
// tf.clip_by_value, which is a minimum of a maximum.
Gradient ClipGradient(GradientContext& c) {
  return {Select(c.b, Equal(c.b, c.input(0), c.output(0)), c.dy(), Zeros(c, c.dy()))};
}

Gradient CastGradient(GradientContext& c) {
  const DType from = c.b.dtype(c.input(0));
  return {IsFloat(from) ? Cast(c.b, c.dy(), from) : Output()};
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

}  // namespace

std::vector<Op> ElementwiseOps() {
  return {
      {"Relu", 1, 1, InferSameFloat, ReluGradient, kNoEffect, kElementwise},
      {"Sigmoid", 1, 1, InferSameFloat, SigmoidGradient, kNoEffect, kElementwise},
      {"Tanh", 1, 1, InferSameFloat, TanhGradient, kNoEffect, kElementwise},
      {"ReluGrad", 2, 2, InferGradOfSame, nullptr, kNoEffect, kElementwise},
      {"SigmoidGrad", 2, 2, InferGradOfSame, nullptr, kNoEffect, kElementwise},
      {"TanhGrad", 2, 2, InferGradOfSame, nullptr, kNoEffect, kElementwise},
      {"Identity", 1, 1, InferSame, IdentityGradient},
      {"CheckNumerics", 1, 1, InferSameFloat, IdentityGradient},
      {"Neg", 1, 1, InferSameNumeric, NegGradient, kNoEffect, kElementwise},
      {"Abs", 1, 1, InferSameNumeric, AbsGradient, kNoEffect, kElementwise},
      {"Square", 1, 1, InferSameNumeric, SquareGradient, kNoEffect, kElementwise},
      {"Exp", 1, 1, InferSameFloat, ExpGradient, kNoEffect, kElementwise},
      {"Log", 1, 1, InferSameFloat, LogGradient, kNoEffect, kElementwise},
      {"Erf", 1, 1, InferSameFloat, ErfGradient, kNoEffect, kElementwise},
      {"Sin", 1, 1, InferSameFloat, SinGradient},
      {"Cos", 1, 1, InferSameFloat, CosGradient},
      {"Sqrt", 1, 1, InferSameFloat, SqrtGradient, kNoEffect, kElementwise},
      {"Rsqrt", 1, 1, InferSameFloat, RsqrtGradient, kNoEffect, kElementwise},
      {"ClipByValue", 1, 1, InferClip, ClipGradient, kNoEffect, kElementwise},
      {"Add", 2, 2, InferBinaryNumeric, AddGradient, kNoEffect, kElementwise},
      {"Sub", 2, 2, InferBinaryNumeric, SubGradient, kNoEffect, kElementwise},
      {"Mul", 2, 2, InferBinaryNumeric, MulGradient, kNoEffect, kElementwise},
      {"Div", 2, 2, InferBinaryNumeric, DivGradient, kNoEffect, kElementwise},
      {"Maximum", 2, 2, InferBinaryNumeric, MaximumGradient, kNoEffect, kElementwise},
      {"Minimum", 2, 2, InferBinaryNumeric, MinimumGradient, kNoEffect, kElementwise},
      {"Pow", 2, 2, InferBinaryFloat, PowGradient, kNoEffect, kElementwise},
      {"Equal", 2, 2, InferEqual, NoGradient},
      {"Greater", 2, 2, InferCompare, NoGradient},
      {"GreaterEqual", 2, 2, InferCompare, NoGradient},
      {"Less", 2, 2, InferCompare, NoGradient},
      {"Select", 3, 3, InferSelect, SelectGradient},
      {"Cast", 1, 1, InferCast, CastGradient},
      {"FusedElementwise", 1, kAnyNumber, InferFusedElementwise, nullptr},
      {"Dropout", 3, 3, InferDropout, DropoutGradient},
      {"DropoutGrad", 3, 3, InferDropout, nullptr},
  };
}

Output Relu(Builder& b, Output x) {
  return Unary(b, "Relu", x);
}
Output ReluGrad(Builder& b, Output dy, Output y) {
  return Binary(b, "ReluGrad", dy, y);
}
Output Sigmoid(Builder& b, Output x) {
  return Unary(b, "Sigmoid", x);
}
Output SigmoidGrad(Builder& b, Output y, Output dy) {
  return Binary(b, "SigmoidGrad", y, dy);
}
Output Tanh(Builder& b, Output x) {
  return Unary(b, "Tanh", x);
}
Output TanhGrad(Builder& b, Output y, Output dy) {
  return Binary(b, "TanhGrad", y, dy);
}
Output Add(Builder& b, Output x, Output y) {
  return Binary(b, "Add", x, y);
}
Output Sub(Builder& b, Output x, Output y) {
  return Binary(b, "Sub", x, y);
}
Output Mul(Builder& b, Output x, Output y) {
  return Binary(b, "Mul", x, y);
}
Output Div(Builder& b, Output x, Output y) {
  return Binary(b, "Div", x, y);
}
Output Maximum(Builder& b, Output x, Output y) {
  return Binary(b, "Maximum", x, y);
}
Output Minimum(Builder& b, Output x, Output y) {
  return Binary(b, "Minimum", x, y);
}
Output Pow(Builder& b, Output x, Output y) {
  return Binary(b, "Pow", x, y);
}
Output Equal(Builder& b, Output x, Output y) {
  return Binary(b, "Equal", x, y);
}
Output Greater(Builder& b, Output x, Output y) {
  return Binary(b, "Greater", x, y);
}
Output GreaterEqual(Builder& b, Output x, Output y) {
  return Binary(b, "GreaterEqual", x, y);
}
Output Less(Builder& b, Output x, Output y) {
  return Binary(b, "Less", x, y);
}
Output Select(Builder& b, Output condition, Output x, Output y) {
  return b.Add("Select", {condition, x, y});
}
Output Identity(Builder& b, Output x, std::string_view name) {
  return b.Add("Identity", {x}, {}, name);
}
Output Neg(Builder& b, Output x) {
  return Unary(b, "Neg", x);
}
Output Exp(Builder& b, Output x) {
  return Unary(b, "Exp", x);
}
Output Log(Builder& b, Output x) {
  return Unary(b, "Log", x);
}
Output Erf(Builder& b, Output x) {
  return Unary(b, "Erf", x);
}
Output Sin(Builder& b, Output x) {
  return Unary(b, "Sin", x);
}
Output Cos(Builder& b, Output x) {
  return Unary(b, "Cos", x);
}
Output Square(Builder& b, Output x) {
  return Unary(b, "Square", x);
}
Output Sqrt(Builder& b, Output x) {
  return Unary(b, "Sqrt", x);
}
Output Rsqrt(Builder& b, Output x) {
  return Unary(b, "Rsqrt", x);
}
Output Abs(Builder& b, Output x) {
  return Unary(b, "Abs", x);
}
Output ClipByValue(Builder& b, Output x, double low, double high) {
  return b.Add("ClipByValue", {x}, {{"clip_value_min", low}, {"clip_value_max", high}});
}

Output Cast(Builder& b, Output x, DType dtype) {
  if (x.valid() && b.dtype(x) == dtype) return x;
  return b.Add("Cast", {x}, {{"dtype", dtype}});
}

Output Dropout(Builder& b, Output x, Output step, Output seed, double rate, int64_t replica) {
  Attributes attributes = {{"rate", rate}, {"op_id", b.NextOpId()}};
  if (replica != 0) attributes.Set("replica", replica);
  return b.Add("Dropout", {x, step, seed}, std::move(attributes));
}

}  // namespace tfjob::graph
