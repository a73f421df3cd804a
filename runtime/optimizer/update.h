// Provides the inner loop of Apply to callers whose rows have padding between them
// (apply_kernel.cc).
#pragma once

#include <cstdint>

#include "runtime/optimizer/optimizer.h"

namespace tfjob::optimizer::internal {

// The smallest number of elements that justifies waking another thread.
inline constexpr int64_t kGrain = 16384;

// The scalar inputs of the loops. MakeUpdate computes them in double from the hyper-parameters and
// the step.
template <typename T>
struct Coefficients {
  T rate = 0;  // Adam's includes the bias correction
  T momentum = 0;
  T keep_1 = 0, take_1 = 0;  // RMSprop: rho and 1 - rho; Adam: take_1 is 1 - beta_1
  T take_2 = 0;              // Adam: 1 - beta_2
  T epsilon = 0;
  T scale = 1;  // factor of the gradient
};

template <typename T>
struct Update {
  using Loop = void (*)(const Coefficients<T>&, int64_t count, T* variable, const T* gradient,
                        T* const* slots);
  Loop loop = nullptr;
  Coefficients<T> coefficients;

  void operator()(int64_t count, T* variable, const T* gradient, T* const* slots) const {
    loop(coefficients, count, variable, gradient, slots);
  }
};

template <typename T>
Update<T> MakeUpdate(const Optimizer& optimizer, int64_t step, T gradient_scale);

}  // namespace tfjob::optimizer::internal
