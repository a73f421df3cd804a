// Defines how gradients are clipped before an optimizer applies them. The arithmetic is Keras 3's
// (keras/src/optimizers/base_optimizer.py, keras/src/backend/common and ops). g is the gradient of
// one variable, |g| is its Euclidean norm, and c is the limit:
//
//   value        min(max(g, -c), c), element by element
//   norm         c g / max(|g|, c)
//   global norm  g s, with s = c min(1 / n, 1 / c), where n is the norm of all gradients combined;
//                s is NaN if n is not finite
//
// Usually, the graph of a training step clips the gradients (model/build.h). Synchronous parameter
// servers instead clip the mean of several gradients, with the functions below.
#pragma once

#include <span>

namespace tfjob::optimizer {

enum class ClipKind { kNone, kValue, kNorm, kGlobalNorm };

struct Clipping {
  ClipKind kind = ClipKind::kNone;
  double limit = 0;  // finite and above 0, unless kind is kNone

  bool operator==(const Clipping&) const = default;
};

// Returns the sum of the squares of all elements. The elements are added as double, in an order
// that depends only on their number.
double SumOfSquares(std::span<const float> gradient);
double SumOfSquares(std::span<const double> gradient);

// Returns the factor by which to multiply a gradient. For the kinds kNorm and kGlobalNorm only.
// `squares` is the sum of the squares of all elements over which the norm is taken.
double ClipFactor(const Clipping& clipping, double squares);

// Replaces each element g with min(max(scale g, -limit), limit). NaN remains NaN.
void ClipByValue(std::span<float> gradient, double scale, double limit);
void ClipByValue(std::span<double> gradient, double scale, double limit);

}  // namespace tfjob::optimizer
