#include "runtime/model/clip_gradients.h"

#include "runtime/graph/ops.h"

namespace tfjob::model {
namespace {

using optimizer::ClipKind;

graph::Output ScalarLike(graph::Builder& b, graph::Output like, double value) {
  return Fill(b, b.dtype(like), {}, value);
}

graph::Output SumOfSquares(graph::Builder& b, graph::Output gradient) {
  return Sum(b, Square(b, gradient), {});
}

graph::Output ClipByNorm(graph::Builder& b, graph::Output gradient, double limit) {
  const graph::Output most = ScalarLike(b, gradient, limit);
  const graph::Output norm = Sqrt(b, SumOfSquares(b, gradient));
  return Div(b, Mul(b, gradient, most), Maximum(b, norm, most));
}

std::vector<graph::Output> ClipByGlobalNorm(graph::Builder& b, std::vector<graph::Output> gradients,
                                            double limit) {
  graph::Output squares = SumOfSquares(b, gradients[0]);
  for (size_t i = 1; i < gradients.size(); ++i) {
    squares = Add(b, squares, SumOfSquares(b, gradients[i]));
  }
  const graph::Output norm = Sqrt(b, squares);
  const graph::Output one = ScalarLike(b, norm, 1);
  const graph::Output most = ScalarLike(b, norm, limit);
  const graph::Output scale = Mul(b, most, Minimum(b, Div(b, one, norm), Div(b, one, most)));
  // Add norm - norm, which is 0 if the norm is finite and NaN otherwise. Without this term,
  // clipping would turn infinite gradients into zeros.
  const graph::Output factor = Add(b, scale, Sub(b, norm, norm));
  for (graph::Output& gradient : gradients) gradient = Mul(b, gradient, factor);
  return gradients;
}

}  // namespace

std::vector<graph::Output> ClipGradients(graph::Builder& b, const optimizer::Clipping& clipping,
                                         std::vector<graph::Output> gradients) {
  const graph::NameScope scope(b, "clip");
  switch (clipping.kind) {
    case ClipKind::kNone:
      break;
    case ClipKind::kValue:
      for (graph::Output& gradient : gradients)
        gradient = ClipByValue(b, gradient, -clipping.limit, clipping.limit);
      break;
    case ClipKind::kNorm:
      for (graph::Output& gradient : gradients) gradient = ClipByNorm(b, gradient, clipping.limit);
      break;
    case ClipKind::kGlobalNorm:
      return ClipByGlobalNorm(b, std::move(gradients), clipping.limit);
  }
  return gradients;
}

}  // namespace tfjob::model
