// Implements the correlations, with Keras' formulas.
#include "runtime/graph/ops.h"
#include "runtime/model/losses/losses.h"
#include "runtime/model/metrics/metric_counts.h"

namespace tfjob::model::counts {
namespace {

using graph::Builder;
using graph::Output;

Output MeanOf(Builder& b, Output x) {
  return Mean(b, x, {-1}, true);
}

Output FromMean(Builder& b, Output x) {
  return Sub(b, x, MeanOf(b, x));
}

Output Variance(Builder& b, Output x) {
  return MeanOf(b, Square(b, FromMean(b, x)));
}

Output Standardized(Builder& b, Output x) {
  return Div(b, FromMean(b, x), Sqrt(b, Variance(b, x)));
}

}  // namespace

Output PearsonCorrelation(Builder& b, Output p, Output y) {
  return Mean(b, Mul(b, Standardized(b, y), Standardized(b, p)), {-1});
}

Output ConcordanceCorrelation(Builder& b, Output p, Output y) {
  const Output mean = MeanOf(b, p);
  // The mean of these products is the covariance: p - mean has a mean of 0.
  const Output products = Mul(b, Sub(b, y, mean), Sub(b, p, mean));
  const Output norm =
      Add(b, Add(b, Variance(b, y), Variance(b, p)), Square(b, Sub(b, MeanOf(b, y), mean)));
  return Mean(b, losses::Times(b, Div(b, products, losses::Plus(b, norm, losses::kEpsilon)), 2),
              {-1});
}

}  // namespace tfjob::model::counts
