// Implements linear algebra, softmax and losses.
#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// ---- inference

Status ExpectFloatMatrix(const TensorType& type) {
  if (IsFloat(type.dtype) && type.shape.rank() == 2) return OkStatus();
  return InvalidArgument("expected a float type of rank 2");
}

InferResult LossAndBackprop(const TensorType& logits) {
  return std::vector{TensorType{logits.dtype, {logits.shape.dim(0)}}, logits};
}

// Returns the shape without its last axis.
std::vector<int64_t> LeadingDims(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end() - 1};
}

// Checks the shapes of two factors. A factor may have more than two axes if its leading axes can be
// flattened into the rows of a single matrix. The leading axes of `a` become axes of the product,
// unless `a` is transposed; in that case, the product sums over these axes.
Status ExpectFactors(const TensorType& a, const TensorType& b, bool transpose_a, bool transpose_b) {
  if (!IsFloat(a.dtype) || a.shape.rank() < 2 || b.shape.rank() < 2)
    return InvalidArgument("expected a float type of rank 2");
  if (a.dtype != b.dtype) return InvalidArgument("expected inputs of one dtype; add a Cast");
  if (a.shape.rank() == 2 && b.shape.rank() == 2) return OkStatus();
  const bool sums = transpose_a && !transpose_b && LeadingDims(a.shape) == LeadingDims(b.shape);
  if (sums || (!transpose_a && b.shape.rank() == 2)) return OkStatus();
  return InvalidArgument(
      "expected more than two axes only for a[…,k] b[k,n], or for aᵀ b of a[…,m] and b[…,n]");
}

InferResult InferMatMul(InferenceContext& context) {
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  const bool transpose_a = context.attributes.Get("transpose_a", false);
  const bool transpose_b = context.attributes.Get("transpose_b", false);
  RETURN_IF_ERROR(ExpectFactors(a, b, transpose_a, transpose_b));
  std::vector<int64_t> dims = transpose_a ? std::vector{a.shape.dim(-1)} : LeadingDims(a.shape);
  dims.push_back(b.shape.dim(transpose_b ? 0 : -1));
  const int64_t inner_a = a.shape.dim(transpose_a ? 0 : -1);
  const int64_t inner_b = b.shape.dim(transpose_b ? -1 : 0);
  if (inner_a != inner_b) {
    return InvalidArgument("expected equal inner dimensions, got ", inner_a, " and ", inner_b);
  }
  return std::vector{TensorType{a.dtype, Shape(std::move(dims))}};
}

InferResult InferMatMulAccumulate(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> product, InferMatMul(context));
  return InferWrite(context);
}

InferResult InferMatMulAdd(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> product, InferMatMul(context));
  if (context.inputs[2] == product[0]) return product;
  return InvalidArgument("expected an added ", product[0].ToString(), ", got ",
                         context.inputs[2].ToString());
}

// The first output is the product, and the second output is the sum of the rows of one factor. The
// product must sum over these rows.
InferResult InferMatMulBiasGrad(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferMatMul(context));
  const int64_t summed = context.attributes.Get("summed", int64_t{1});
  if (summed != 0 && summed != 1) return InvalidArgument("expected summed 0 or 1, got ", summed);
  const bool rows = summed == 0 ? context.attributes.Get("transpose_a", false)
                                : !context.attributes.Get("transpose_b", false);
  if (!rows) return InvalidArgument("expected a product over the rows of input ", summed);
  const TensorType& factor = context.inputs[static_cast<size_t>(summed)];
  types.push_back({factor.dtype, {factor.shape.dim(-1)}});
  return types;
}

InferResult InferFusedMatMul(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferMatMul(context));
  if (context.attributes.Get("bias", false) != (context.inputs.size() == 3)) {
    return InvalidArgument("expected a third input if and only if the attribute bias is set");
  }
  if (context.inputs.size() == 3 &&
      context.inputs[2] != TensorType{types[0].dtype, {types[0].shape.dim(-1)}}) {
    return InvalidArgument("expected a bias ", Name(types[0].dtype), "[", types[0].shape.dim(-1),
                           "]");
  }
  return types;
}

// The first output is the GELU of the second one.
InferResult InferMatMulGelu(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferFusedMatMul(context));
  types.push_back(types[0]);
  return types;
}

// The third input is the value whose GELU the product is the gradient of.
InferResult InferMatMulGeluGrad(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> product, InferMatMul(context));
  if (context.inputs[2] == product[0]) return product;
  return InvalidArgument("expected a value before GELU of the type ", product[0].ToString(),
                         ", got ", context.inputs[2].ToString());
}

InferResult InferRows(InferenceContext& context) {
  if (!IsFloat(context.inputs[0].dtype) || context.inputs[0].shape.rank() < 1) {
    return InvalidArgument("expected a float type of rank 1 or more");
  }
  return std::vector{context.inputs[0]};
}

InferResult InferSoftmaxGrad(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferRows(context));
  if (context.inputs[1] != types[0])
    return InvalidArgument("expected two inputs of one dtype and shape");
  return types;
}

InferResult InferBiasAdd(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferRows(context));
  const TensorType bias{types[0].dtype, {types[0].shape.dim(-1)}};
  if (context.inputs[1] != bias) return InvalidArgument("expected a bias ", bias.ToString());
  return types;
}

InferResult InferBiasAddGrad(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferRows(context));
  return std::vector{TensorType{types[0].dtype, {types[0].shape.dim(-1)}}};
}

InferResult InferSparseCrossEntropy(InferenceContext& context) {
  const TensorType& logits = context.inputs[0];
  const TensorType& labels = context.inputs[1];
  RETURN_IF_ERROR(ExpectFloatMatrix(logits));
  if (IsFloat(labels.dtype) || labels.dtype == DType::kBool) {
    return InvalidArgument("expected labels of int32, int64 or uint8");
  }
  if (labels.shape != Shape{logits.shape.dim(0)}) {
    return InvalidArgument("expected labels of shape [", logits.shape.dim(0),
                           "], one per row of the logits");
  }
  return LossAndBackprop(logits);
}

InferResult InferCrossEntropy(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloatMatrix(context.inputs[0]));
  if (context.inputs[0] != context.inputs[1]) {
    return InvalidArgument("expected labels of the logits' dtype and shape");
  }
  return LossAndBackprop(context.inputs[0]);
}

// ---- gradients

// Reshapes [n], one value per row, to [n,1], so that each value broadcasts along its row.
Output Column(Builder& b, Output rows) {
  return Reshape(b, rows, {b.shape(rows).dim(0), 1});
}

// Returns the gradient of the logits of a cross-entropy. Uses the op's second output, d loss / d
// logits, which has one row per example.
Output LogitsGradient(GradientContext& c) {
  return Mul(c.b, Column(c.b, c.dy()), c.output(1));
}

// Reports an error and returns true if a gradient flows through the output `backprop`, because this
// gradient would require a second derivative.
bool RefuseSecondDerivative(GradientContext& c) {
  if (!c.gradients[1].valid()) return false;
  c.b.Fail(Unimplemented("node ", c.node.name, ": op ", c.node.op,
                         " has no gradient for its output backprop"));
  return true;
}

// c = a b: d_a = dc bᵀ, d_b = aᵀ dc. The gradient of a transposed operand is transposed.
Gradient MatMulGradient(GradientContext& c) {
  const bool ta = c.node.attributes.Get("transpose_a", false);
  const bool tb = c.node.attributes.Get("transpose_b", false);
  const Output a = c.input(0);
  const Output b = c.input(1);
  // Append the gradient of the weights first, so that it can be sent while other gradients are
  // being computed.
  const Output d_b = tb ? MatMul(c.b, c.dy(), a, true, ta) : MatMul(c.b, a, c.dy(), !ta, false);
  const Output d_a = ta ? MatMul(c.b, b, c.dy(), tb, true) : MatMul(c.b, c.dy(), b, false, !tb);
  return {d_a, d_b};
}

Gradient BiasAddGradient(GradientContext& c) {
  return {c.dy(), BiasAddGrad(c.b, c.dy())};
}

// y = softmax(x): d_x = (dy - Σ dy y) y
Gradient SoftmaxGradient(GradientContext& c) {
  return {SoftmaxGrad(c.b, c.output(0), c.dy())};
}

// y = log softmax(x): d_x = dy - Σ dy softmax(x)
Gradient LogSoftmaxGradient(GradientContext& c) {
  const Output softmax = Exp(c.b, c.output(0));
  return {Sub(c.b, c.dy(), Mul(c.b, Sum(c.b, c.dy(), {-1}, true), softmax))};
}

Gradient SparseCrossEntropyGradient(GradientContext& c) {
  if (RefuseSecondDerivative(c)) return NoGradient(c);
  return {LogitsGradient(c), Output()};
}

// d_labels = -dloss log softmax(logits)
Gradient CrossEntropyGradient(GradientContext& c) {
  if (RefuseSecondDerivative(c)) return NoGradient(c);
  const Output d_labels = Mul(c.b, Column(c.b, Neg(c.b, c.dy())), LogSoftmax(c.b, c.input(0)));
  return {LogitsGradient(c), d_labels};
}

}  // namespace

std::vector<Op> LinearOps() {
  return {
      {"MatMul", 2, 2, InferMatMul, MatMulGradient},
      {"MatMulAccumulate", 2, 2, InferMatMulAccumulate, nullptr, Effect::kWrite},
      {"MatMulAdd", 3, 3, InferMatMulAdd, nullptr},
      {"FusedMatMul", 2, 3, InferFusedMatMul, nullptr},
      {"MatMulBiasGrad", 2, 2, InferMatMulBiasGrad, nullptr},
      {"MatMulGelu", 2, 3, InferMatMulGelu, nullptr},
      {"MatMulGeluGrad", 3, 3, InferMatMulGeluGrad, nullptr},
      {"BiasAdd", 2, 2, InferBiasAdd, BiasAddGradient},
      {"BiasAddGrad", 1, 1, InferBiasAddGrad, nullptr},
      {"Softmax", 1, 1, InferRows, SoftmaxGradient},
      {"SoftmaxGrad", 2, 2, InferSoftmaxGrad, nullptr},
      {"LogSoftmax", 1, 1, InferRows, LogSoftmaxGradient},
      {"SparseSoftmaxCrossEntropyWithLogits", 2, 2, InferSparseCrossEntropy,
       SparseCrossEntropyGradient},
      {"SoftmaxCrossEntropyWithLogits", 2, 2, InferCrossEntropy, CrossEntropyGradient},
  };
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
Output Softmax(Builder& b, Output x) {
  return Unary(b, "Softmax", x);
}
Output SoftmaxGrad(Builder& b, Output y, Output dy) {
  return Binary(b, "SoftmaxGrad", y, dy);
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

}  // namespace tfjob::graph
