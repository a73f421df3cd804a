#include "runtime/optimizer/clipping.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tfjob::optimizer {
namespace {

// The number of independent partial sums. With several sums, the compiler can vectorise the loop
// without changing the result.
constexpr size_t kLanes = 8;

template <typename T>
double Squares(std::span<const T> gradient) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= gradient.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto element = static_cast<double>(gradient[i + lane]);
      lanes[lane] += element * element;
    }
  }
  for (size_t lane = 0; i < gradient.size(); ++i, ++lane) {
    const auto element = static_cast<double>(gradient[i]);
    lanes[lane] += element * element;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

template <typename T>
void ClipSpan(std::span<T> gradient, double scale, double limit) {
  const auto by = static_cast<T>(scale), most = static_cast<T>(limit);
  for (T& element : gradient) element = std::min(std::max(element * by, -most), most);
}

}  // namespace

double SumOfSquares(std::span<const float> gradient) {
  return Squares(gradient);
}
double SumOfSquares(std::span<const double> gradient) {
  return Squares(gradient);
}

double ClipFactor(const Clipping& clipping, double squares) {
  const double norm = std::sqrt(squares), limit = clipping.limit;
  // The last term is 0 if the norm is finite, and NaN otherwise. Without this term, clipping would
  // turn infinite gradients into zeros.
  if (clipping.kind == ClipKind::kGlobalNorm) {
    return limit * std::min(1 / norm, 1 / limit) + (norm - norm);
  }
  return limit / std::max(norm, limit);  // NaN if the norm is NaN
}

void ClipByValue(std::span<float> gradient, double scale, double limit) {
  ClipSpan(gradient, scale, limit);
}
void ClipByValue(std::span<double> gradient, double scale, double limit) {
  ClipSpan(gradient, scale, limit);
}

}  // namespace tfjob::optimizer
