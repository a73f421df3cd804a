#include <array>
#include <cmath>

#include "runtime/base/check.h"
#include "runtime/kernels/stream.h"
#include "runtime/optimizer/update.h"

namespace tfjob::optimizer {
namespace internal {
namespace {

template <typename T>
using C = const Coefficients<T>&;

template <typename T>
void Sgd(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient, T* const*) {
  const T rate = c.rate * c.scale;
  for (int64_t i = 0; i < count; ++i) w[i] -= rate * gradient[i];
}

template <typename T, bool kNesterov>
void SgdMomentum(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient,
                 T* const* slots) {
  T* __restrict m = slots[0];
  const T rate = c.rate * c.scale, momentum = c.momentum;
  for (int64_t i = 0; i < count; ++i) {
    const T step = rate * gradient[i];
    m[i] = m[i] * momentum - step;
    w[i] += kNesterov ? m[i] * momentum - step : m[i];
  }
}

template <typename T>
void Adagrad(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient,
             T* const* slots) {
  T* __restrict sum = slots[0];
  const T rate = c.rate, epsilon = c.epsilon, scale = c.scale;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    sum[i] += g * g;
    w[i] -= rate * g / std::sqrt(sum[i] + epsilon);
  }
}

template <typename T>
void Adam(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient, T* const* slots) {
  T* __restrict m = slots[0];
  T* __restrict v = slots[1];
  const T rate = c.rate, epsilon = c.epsilon, scale = c.scale, take_1 = c.take_1, take_2 = c.take_2;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    m[i] += (g - m[i]) * take_1;
    v[i] += (g * g - v[i]) * take_2;
    w[i] -= m[i] * rate / (std::sqrt(v[i]) + epsilon);
  }
}

template <typename T, bool kCentered, bool kMomentum>
void Rmsprop(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient,
             T* const* slots) {
  T* __restrict v = slots[0];
  T* __restrict average = slots[kCentered ? 1 : 0];
  T* __restrict m = slots[kMomentum ? (kCentered ? 2 : 1) : 0];
  const T rate = c.rate, epsilon = c.epsilon, scale = c.scale, keep = c.keep_1, take = c.take_1;
  const T momentum = c.momentum;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    const T square = keep * v[i] + take * (g * g);
    v[i] = square;
    T denominator = square + epsilon;
    if constexpr (kCentered) {
      const T mean = keep * average[i] + take * g;
      average[i] = mean;
      denominator = square - mean * mean + epsilon;
    }
    T step = rate * g / std::sqrt(denominator);
    if constexpr (kMomentum) m[i] = step = momentum * m[i] + step;
    w[i] -= step;
  }
}

template <typename T>
typename Update<T>::Loop LoopOf(const Optimizer& o) {
  const bool momentum = o.momentum != 0;
  switch (o.kind) {
    case Kind::kSgd:
      if (!momentum) return Sgd<T>;
      return o.nesterov ? SgdMomentum<T, true> : SgdMomentum<T, false>;
    case Kind::kAdagrad:
      return Adagrad<T>;
    case Kind::kAdam:
      return Adam<T>;
    case Kind::kRmsprop:
      break;
  }
  if (o.centered) return momentum ? Rmsprop<T, true, true> : Rmsprop<T, true, false>;
  return momentum ? Rmsprop<T, false, true> : Rmsprop<T, false, false>;
}

}  // namespace

template <typename T>
Update<T> MakeUpdate(const Optimizer& o, int64_t step, T gradient_scale) {
  Update<T> update{LoopOf<T>(o), {}};
  Coefficients<T>& c = update.coefficients;
  double rate = RateAt(o.schedule, o.learning_rate, step);
  if (o.kind == Kind::kAdam) {
    const double t = static_cast<double>(step) + 1;
    rate *= std::sqrt(1 - std::pow(o.beta_2, t)) / (1 - std::pow(o.beta_1, t));
    c.take_1 = static_cast<T>(1 - o.beta_1);
    c.take_2 = static_cast<T>(1 - o.beta_2);
  } else {
    c.keep_1 = static_cast<T>(o.rho);
    c.take_1 = static_cast<T>(1 - o.rho);
  }
  c.rate = static_cast<T>(rate);
  c.momentum = static_cast<T>(o.momentum);
  c.epsilon = static_cast<T>(o.epsilon);
  c.scale = gradient_scale;
  return update;
}

template Update<float> MakeUpdate(const Optimizer&, int64_t, float);
template Update<double> MakeUpdate(const Optimizer&, int64_t, double);

}  // namespace internal

namespace {

template <typename T>
void ApplySpans(const Optimizer& optimizer, int64_t step, std::span<T> variable,
                std::span<const T> gradient, std::span<const std::span<T>> slots,
                kernels::Stream& stream, T scale) {
  ENFORCE(gradient.size() == variable.size(), "one gradient element for each of the variable");
  ENFORCE(slots.size() == Slots(optimizer).size(), "the optimizer's slots");
  for (const std::span<T>& slot : slots) {
    ENFORCE(slot.size() == variable.size(), "a slot is as large as its variable");
  }
  const auto update = internal::MakeUpdate<T>(optimizer, step, scale);
  stream.ParallelFor(
      static_cast<int64_t>(variable.size()), internal::kGrain, [&](int64_t begin, int64_t end) {
        std::array<T*, kMaxSlots> at{};
        for (size_t i = 0; i < slots.size(); ++i) at[i] = slots[i].data() + begin;
        update(end - begin, variable.data() + begin, gradient.data() + begin, at.data());
      });
}

}  // namespace

void Apply(const Optimizer& optimizer, int64_t step, std::span<float> variable,
           std::span<const float> gradient, std::span<const std::span<float>> slots,
           kernels::Stream& stream, float gradient_scale) {
  ApplySpans(optimizer, step, variable, gradient, slots, stream, gradient_scale);
}

void Apply(const Optimizer& optimizer, int64_t step, std::span<double> variable,
           std::span<const double> gradient, std::span<const std::span<double>> slots,
           kernels::Stream& stream, double gradient_scale) {
  ApplySpans(optimizer, step, variable, gradient, slots, stream, gradient_scale);
}

}  // namespace tfjob::optimizer
