#include "runtime/graph/ops.h"

#include <string>
#include <utility>

namespace tfjob::graph {
namespace {

Output Unary(Builder& b, std::string_view op, Output x) {
  return b.Add(op, {x});
}

Output Binary(Builder& b, std::string_view op, Output x, Output y) {
  return b.Add(op, {x, y});
}

Output Reduce(Builder& b, std::string_view op, Output x, std::vector<int64_t> axes,
              bool keep_dims) {
  Attributes attributes{{"axes", std::move(axes)}};
  if (keep_dims) attributes.Set("keep_dims", true);
  return b.Add(op, {x}, std::move(attributes));
}

Output Random(Builder& b, std::string_view op, Output step, Output seed, Attributes attributes,
              DType dtype, Shape shape) {
  attributes.Set("dtype", dtype);
  attributes.Set("shape", std::move(shape));
  attributes.Set("op_id", b.NextOpId());
  return b.Add(op, {step, seed}, std::move(attributes));
}

template <typename T>
Tensor CastScalar(double value) {
  return Tensor::Scalar<T>(static_cast<T>(value));
}

}  // namespace

Output Placeholder(Builder& b, std::string_view name, DType dtype, Shape shape) {
  return b.Add("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(shape)}}, name);
}

Output Const(Builder& b, Tensor value, std::string_view name) {
  return b.Add("Const", {}, {{"value", std::move(value)}}, name);
}

Output Scalar(Builder& b, DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
      return Const(b, CastScalar<float>(value));
    case DType::kFloat64:
      return Const(b, CastScalar<double>(value));
    case DType::kInt32:
      return Const(b, CastScalar<int32_t>(value));
    case DType::kInt64:
      return Const(b, CastScalar<int64_t>(value));
    case DType::kUInt8:
      return Const(b, CastScalar<uint8_t>(value));
    case DType::kBool:
      return Const(b, CastScalar<bool>(value));
  }
  return b.Fail(InvalidArgument("a scalar of an unknown dtype"));
}

Output Fill(Builder& b, DType dtype, Shape shape, double value) {
  return b.Add("Fill", {}, {{"dtype", dtype}, {"shape", std::move(shape)}, {"value", value}});
}

Output ReadVariable(Builder& b, std::string_view variable, DType dtype, Shape shape) {
  Attributes attributes{
      {"variable", std::string(variable)}, {"dtype", dtype}, {"shape", std::move(shape)}};
  return b.Add("ReadVariable", {}, std::move(attributes), variable);
}

void Assign(Builder& b, std::string_view variable, Output value) {
  b.Add("Assign", {value}, {{"variable", std::string(variable)}}, StrCat(variable, "/Assign"));
}

void AssignAdd(Builder& b, std::string_view variable, Output value) {
  b.Add("AssignAdd", {value}, {{"variable", std::string(variable)}},
        StrCat(variable, "/AssignAdd"));
}

void ApplyOptimizer(Builder& b, std::string_view variable, Output gradient, Output step,
                    Attributes optimizer) {
  optimizer.Set("variable", std::string(variable));
  b.Add("ApplyOptimizer", {gradient, step}, std::move(optimizer), StrCat(variable, "/Apply"));
}

Output MatMul(Builder& b, Output x, Output y, bool transpose_a, bool transpose_b) {
  Attributes attributes;
  if (transpose_a) attributes.Set("transpose_a", true);
  if (transpose_b) attributes.Set("transpose_b", true);
  return b.Add("MatMul", {x, y}, std::move(attributes));
}

Output BiasAdd(Builder& b, Output x, Output bias) {
  return Binary(b, "BiasAdd", x, bias);
}
Output BiasAddGrad(Builder& b, Output dy) {
  return Unary(b, "BiasAddGrad", dy);
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
Output Softmax(Builder& b, Output x) {
  return Unary(b, "Softmax", x);
}
Output LogSoftmax(Builder& b, Output x) {
  return Unary(b, "LogSoftmax", x);
}

CrossEntropy SparseSoftmaxCrossEntropyWithLogits(Builder& b, Output logits, Output labels) {
  const Output loss = Binary(b, "SparseSoftmaxCrossEntropyWithLogits", logits, labels);
  return {loss, Output{loss.node, 1}};
}

CrossEntropy SoftmaxCrossEntropyWithLogits(Builder& b, Output logits, Output labels) {
  const Output loss = Binary(b, "SoftmaxCrossEntropyWithLogits", logits, labels);
  return {loss, Output{loss.node, 1}};
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

Output Sum(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, "Sum", x, std::move(axes), keep_dims);
}
Output Mean(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, "Mean", x, std::move(axes), keep_dims);
}
Output Max(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, "Max", x, std::move(axes), keep_dims);
}
Output Min(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, "Min", x, std::move(axes), keep_dims);
}

Output ArgMax(Builder& b, Output x, int axis) {
  return b.Add("ArgMax", {x}, {{"axis", static_cast<int64_t>(axis)}});
}

Output Reshape(Builder& b, Output x, Shape shape) {
  return b.Add("Reshape", {x}, {{"shape", std::move(shape)}});
}

Output Transpose(Builder& b, Output x, std::vector<int64_t> permutation) {
  return b.Add("Transpose", {x}, {{"perm", std::move(permutation)}});
}

Output BroadcastTo(Builder& b, Output x, Shape shape) {
  return b.Add("BroadcastTo", {x}, {{"shape", std::move(shape)}});
}

Output Dropout(Builder& b, Output x, Output step, Output seed, double rate, int64_t replica) {
  Attributes attributes = {{"rate", rate}, {"op_id", b.NextOpId()}};
  if (replica != 0) attributes.Set("replica", replica);
  return b.Add("Dropout", {x, step, seed}, std::move(attributes));
}

Output RandomUniform(Builder& b, Output step, Output seed, DType dtype, Shape shape, double low,
                     double high) {
  return Random(b, "RandomUniform", step, seed, {{"minval", low}, {"maxval", high}}, dtype,
                std::move(shape));
}

Output RandomNormal(Builder& b, Output step, Output seed, DType dtype, Shape shape, double mean,
                    double stddev) {
  return Random(b, "RandomNormal", step, seed, {{"mean", mean}, {"stddev", stddev}}, dtype,
                std::move(shape));
}

Output TruncatedNormal(Builder& b, Output step, Output seed, DType dtype, Shape shape, double mean,
                       double stddev) {
  return Random(b, "TruncatedNormal", step, seed, {{"mean", mean}, {"stddev", stddev}}, dtype,
                std::move(shape));
}

}  // namespace tfjob::graph
