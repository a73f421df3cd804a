#include "runtime/graph/gradient_functions.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// Reshapes one value per row, [n], to a column [n,1] that broadcasts over the rows.
Output Column(Builder& b, Output rows) {
  return Reshape(b, rows, {b.shape(rows).dim(0), 1});
}

// d_logits of a cross-entropy: the second output is d loss / d logits, one row per example.
Output LogitsGradient(GradientContext& c) {
  return Mul(c.b, Column(c.b, c.dy()), c.output(1));
}

// Backprop is an internal output; a gradient through it would be a second derivative.
bool RefuseSecondDerivative(GradientContext& c) {
  if (!c.gradients[1].valid()) return false;
  c.b.Fail(Unimplemented("node ", c.node.name, ": op ", c.node.op,
                         " has no gradient for its output backprop"));
  return true;
}

}  // namespace

// c = a b: d_a = dc bᵀ, d_b = aᵀ dc; if an operand is transposed, so is its gradient
Gradient MatMulGradient(GradientContext& c) {
  const bool ta = c.node.attributes.Get("transpose_a", false);
  const bool tb = c.node.attributes.Get("transpose_b", false);
  const Output a = c.input(0);
  const Output b = c.input(1);
  // The weights' gradient comes first: it is sent while the rest is computed.
  const Output d_b = tb ? MatMul(c.b, c.dy(), a, true, ta) : MatMul(c.b, a, c.dy(), !ta, false);
  const Output d_a = ta ? MatMul(c.b, b, c.dy(), tb, true) : MatMul(c.b, c.dy(), b, false, !tb);
  return {d_a, d_b};
}

Gradient BiasAddGradient(GradientContext& c) {
  return {c.dy(), BiasAddGrad(c.b, c.dy())};
}

// y = softmax(x): d_x = (dy - Σ dy y) y
Gradient SoftmaxGradient(GradientContext& c) {
  const Output y = c.output(0);
  const Output along = Sum(c.b, Mul(c.b, c.dy(), y), {-1}, true);
  return {Mul(c.b, Sub(c.b, c.dy(), along), y)};
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

}  // namespace tfjob::graph
