// Defines how gradients are clipped before an optimizer applies them. The arithmetic is that of
// Keras 3 (keras/src/optimizers/base_optimizer.py, keras/src/backend/common and ops). Here, g is
// the gradient of one variable, |g| is its Euclidean norm, and c is the limit:
//
//   value        min(max(g, -c), c), element by element
//   norm         c g / max(|g|, c)
//   global norm  g s, with s = c min(1 / n, 1 / c), where n is the norm of all gradients combined;
//                s is NaN if n is not finite
//
// Usually, gradients are clipped in the graph of a training step (model/build.h). Synchronous
// parameter servers instead use the functions below to clip the mean of several gradients.
#pragma once

#include <span>

namespace tfjob::optimizer {

enum class ClipKind { kNone, kValue, kNorm, kGlobalNorm };

struct Clipping {
  ClipKind kind = ClipKind::kNone;
  double limit = 0;  // finite and above 0, unless kind is kNone

  bool operator==(const Clipping&) const = default;
};

// Returns the sum of the squares of all elements. Adds in double precision, in an order that
// depends only on the number of elements.
double SumOfSquares(std::span<const float> gradient);
double SumOfSquares(std::span<const double> gradient);

// Returns the factor by which to multiply a gradient, for the kinds kNorm and kGlobalNorm.
// `squares` is the sum of the squares of all elements that the norm covers.
double ClipFactor(const Clipping& clipping, double squares);

// Replaces each element g with min(max(scale g, -limit), limit). NaN stays NaN.
void ClipByValue(std::span<float> gradient, double scale, double limit);
void ClipByValue(std::span<double> gradient, double scale, double limit);

}  // namespace tfjob::optimizer
