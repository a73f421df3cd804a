// Defines functions of keras.ops that round numbers, and functions that are derived from rounded
// quotients. As in TensorFlow, no gradient flows through a number that has been rounded.
#include <cmath>
#include <limits>

#include "runtime/graph/ops.h"
#include "runtime/model/operations/operation_table.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;
using Outputs = std::vector<Output>;

Output SameType(Builder& b, Output x, double value) {
  return Scalar(b, b.dtype(x), value);
}

// Converts integers to float32, like Keras.
Output AsFloat(Builder& b, Output x) {
  return IsFloatType(b.dtype(x)) ? x : Cast(b, x, DType::kFloat32);
}

Output FloatsOf(Builder& b, Output condition, Output like) {
  return Cast(b, condition, b.dtype(like));
}

// Returns `rounded` where |x| is so small that an int64 can represent x, and x itself elsewhere:
// larger numbers have no fraction, and NaN remains NaN.
Output WhereSmall(Builder& b, Output x, Output rounded) {
  return Select(b, Less(b, Abs(b, x), SameType(b, x, 0x1p53)), rounded, x);
}

// Returns the largest integers that are at most x.
Output Floored(Builder& b, Output x) {
  const Output towards_zero = Cast(b, Cast(b, x, DType::kInt64), b.dtype(x));
  const Output floor = Sub(b, towards_zero, FloatsOf(b, Less(b, x, towards_zero), x));
  return WhereSmall(b, x, floor);
}
Outputs Floor(const OperationCall& call) {
  return {Floored(call.b, AsFloat(call.b, call.x[0]))};
}
Outputs Ceil(const OperationCall& call) {
  return {Neg(call.b, Floored(call.b, Neg(call.b, AsFloat(call.b, call.x[0]))))};
}

// Returns the nearest integers and, of two integers that are equally near, the even one.
Output Nearest(Builder& b, Output x) {
  const Output below = Floored(b, x), rest = Sub(b, x, below);
  const Output half = SameType(b, x, 0.5);
  const Output half_of_below = Mul(b, below, half);
  const Output odd = FloatsOf(b, Greater(b, half_of_below, Floored(b, half_of_below)), x);
  const Output up = Add(b, FloatsOf(b, Greater(b, rest, half), x),
                        Mul(b, FloatsOf(b, Equal(b, rest, half), x), odd));
  return WhereSmall(b, x, Add(b, below, up));
}

void RoundArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Integer("decimals", operation.decimals,
                  {.least = -30, .most = 30, .expected = "an integer from -30 to 30"});
}
Outputs Round(const OperationCall& call) {
  Builder& b = call.b;
  const DType dtype = b.dtype(call.x[0]);
  const int64_t decimals = call.operation.decimals;
  if (!IsFloatType(dtype) && decimals >= 0) return {graph::Identity(b, call.x[0])};
  const Output x = AsFloat(b, call.x[0]);
  if (decimals == 0) return {Nearest(b, x)};
  const Output factor = SameType(b, x, std::pow(10.0, static_cast<double>(decimals)));
  return {Cast(b, Div(b, Nearest(b, Mul(b, x, factor)), factor), dtype)};
}

Outputs Sign(const OperationCall& call) {
  Builder& b = call.b;
  const Output x = call.x[0], zero = SameType(b, x, 0);
  const Output sign = Sub(b, FloatsOf(b, Greater(b, x, zero), x), FloatsOf(b, Less(b, x, zero), x));
  return {Select(b, Equal(b, x, x), sign, x)};  // NaN remains NaN
}

// Returns bool operands as int32, like Keras, and other operands unchanged.
Output AsNumber(Builder& b, Output x) {
  return b.dtype(x) == DType::kBool ? Cast(b, x, DType::kInt32) : x;
}

// Returns where the remainder is not 0 and its sign differs from that of y: there, the quotient was
// rounded to an integer above the exact one.
Output IsBelow(Builder& b, Output remainder, Output y) {
  const Output zero = SameType(b, y, 0);
  return Select(b, Less(b, y, zero), Greater(b, remainder, zero), Less(b, remainder, zero));
}

struct Quotient {
  Output floor, remainder;
};

// Divides integers. The quotient is rounded down, and the remainder has the sign of y. If y is 0,
// the quotient is 0 and the remainder is x.
Quotient Divided(Builder& b, Output x, Output y) {
  const Output towards_zero = Div(b, x, y), rest = Sub(b, x, Mul(b, towards_zero, y));
  const Output below = Cast(b, IsBelow(b, rest, y), b.dtype(x));
  return {Sub(b, towards_zero, below), Add(b, rest, Mul(b, below, y))};
}

Outputs FloorDivide(const OperationCall& call) {
  Builder& b = call.b;
  const Output x = AsNumber(b, call.x[0]), y = AsNumber(b, call.x[1]);
  return {IsFloatType(b.dtype(x)) ? Floored(b, Div(b, x, y)) : Divided(b, x, y).floor};
}

// Computes x - ⌊x / y⌋·y in float64, so that rounding the quotient does not change the result.
Outputs Mod(const OperationCall& call) {
  Builder& b = call.b;
  const Output numerator = AsNumber(b, call.x[0]), denominator = AsNumber(b, call.x[1]);
  const DType dtype = b.dtype(numerator);
  if (!IsFloatType(dtype)) return {Divided(b, numerator, denominator).remainder};
  const Output x = Cast(b, numerator, DType::kFloat64);
  const Output y = Cast(b, denominator, DType::kFloat64);
  const Output rest = Sub(b, x, Mul(b, Floored(b, Div(b, x, y)), y));
  return {Cast(b, Select(b, IsBelow(b, rest, y), Add(b, rest, y), rest), dtype)};
}

// Applies `kFunction` in float64, in which 1 + x and exp(x) - 1 lose nothing that float32 could
// represent unless |x| < 1e-9.
template <Output (*kFunction)(Builder&, Output)>
Outputs InFloat64(const OperationCall& call) {
  Builder& b = call.b;
  const Output x = AsFloat(b, call.x[0]);
  return {Cast(b, kFunction(b, Cast(b, x, DType::kFloat64)), b.dtype(x))};
}
Output LogOfOnePlus(Builder& b, Output x) {
  return Log(b, Add(b, x, SameType(b, x, 1)));
}
Output ExpMinusOne(Builder& b, Output x) {
  return Sub(b, Exp(b, x), SameType(b, x, 1));
}

constexpr CallForm kOfOne = CallForm::kUnary, kOfTwo = CallForm::kBinary;

constexpr OperationKind kRoundingOperations[] = {
    {"numpy", "Floor", kOfOne, nullptr, Floor},
    {"numpy", "Ceil", kOfOne, nullptr, Ceil},
    {"numpy", "Round", kOfOne, RoundArguments, Round},
    {"numpy", "Sign", kOfOne, nullptr, Sign},
    {"numpy", "Mod", kOfTwo, nullptr, Mod},
    {"numpy", "FloorDivide", kOfTwo, nullptr, FloorDivide},
    {"numpy", "Log1p", kOfOne, nullptr, InFloat64<LogOfOnePlus>},
    {"numpy", "Expm1", kOfOne, nullptr, InFloat64<ExpMinusOne>},
};

}  // namespace

std::span<const OperationKind> RoundingOperations() {
  return kRoundingOperations;
}

}  // namespace tfjob::model::layers
