// Implements the arithmetic of each kind of optimizer, in loops that the compiler vectorises.
#include "runtime/optimizer/loops.h"

#include <algorithm>
#include <cmath>

namespace tfjob::optimizer::internal {
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

template <typename T, bool kAmsgrad>
void Adam(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient, T* const* slots) {
  T* __restrict m = slots[0];
  T* __restrict v = slots[1];
  T* __restrict most = slots[kAmsgrad ? 2 : 1];
  const T rate = c.rate, epsilon = c.epsilon, scale = c.scale, take_1 = c.take_1, take_2 = c.take_2;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    m[i] += (g - m[i]) * take_1;
    T second = v[i] + (g * g - v[i]) * take_2;
    v[i] = second;
    if constexpr (kAmsgrad) most[i] = second = std::max(second, most[i]);
    w[i] -= m[i] * rate / (std::sqrt(second) + epsilon);
  }
}

template <typename T>
void Nadam(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient, T* const* slots) {
  T* __restrict m = slots[0];
  T* __restrict v = slots[1];
  const T rate = c.rate, gradient_rate = c.gradient_rate, correction = c.correction;
  const T epsilon = c.epsilon, scale = c.scale, take_1 = c.take_1, take_2 = c.take_2;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    m[i] += (g - m[i]) * take_1;
    v[i] += (g * g - v[i]) * take_2;
    w[i] -= (rate * m[i] + gradient_rate * g) / (std::sqrt(v[i] * correction) + epsilon);
  }
}

template <typename T>
void Adamax(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient, T* const* slots) {
  T* __restrict m = slots[0];
  T* __restrict norm = slots[1];
  const T rate = c.rate, epsilon = c.epsilon, scale = c.scale, take_1 = c.take_1, keep_2 = c.keep_2;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    m[i] += (g - m[i]) * take_1;
    norm[i] = std::max(keep_2 * norm[i], std::abs(g));
    w[i] -= rate * m[i] / (norm[i] + epsilon);
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
void Adadelta(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient,
              T* const* slots) {
  T* __restrict squares = slots[0];
  T* __restrict changes = slots[1];
  const T rate = c.rate, epsilon = c.epsilon, scale = c.scale, keep = c.keep_1, take = c.take_1;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    squares[i] = keep * squares[i] + take * (g * g);
    const T change = std::sqrt(changes[i] + epsilon) * g / std::sqrt(squares[i] + epsilon);
    changes[i] = keep * changes[i] + take * (change * change);
    w[i] -= rate * change;
  }
}

// Computes a step of Ftrl. If kRoot is set, the power is 1 / 2, Keras' default. The loop for other
// powers is not vectorised.
template <typename T, bool kRoot>
void Ftrl(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient, T* const* slots) {
  T* __restrict sum = slots[0];
  T* __restrict linear = slots[1];
  const T rate = c.rate, scale = c.scale, l1 = c.l1, l2 = c.l2, shrink = c.shrink, power = c.power;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    const T before = sum[i], after = before + g * g;
    const T root_before = kRoot ? std::sqrt(before) : std::pow(before, power);
    const T root_after = kRoot ? std::sqrt(after) : std::pow(after, power);
    const T z = linear[i] + g + shrink * w[i] - (root_after - root_before) / rate * w[i];
    linear[i] = z;
    sum[i] = after;
    w[i] = (std::min(std::max(z, -l1), l1) - z) / (root_after / rate + l2);
  }
}

template <typename T>
void Lion(C<T> c, int64_t count, T* __restrict w, const T* __restrict gradient, T* const* slots) {
  T* __restrict m = slots[0];
  const T rate = c.rate, scale = c.scale;
  const T keep_1 = c.keep_1, take_1 = c.take_1, keep_2 = c.keep_2, take_2 = c.take_2;
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    const T direction = keep_1 * m[i] + take_1 * g;
    const T sign = direction > 0 ? T{1} : direction < 0 ? T{-1} : direction;  // NaN stays NaN
    w[i] -= rate * sign;
    m[i] = keep_2 * m[i] + take_2 * g;
  }
}

template <typename T>
typename Update<T>::Loop RmspropLoop(const Optimizer& o) {
  const bool momentum = o.momentum != 0;
  if (o.centered) return momentum ? Rmsprop<T, true, true> : Rmsprop<T, true, false>;
  return momentum ? Rmsprop<T, false, true> : Rmsprop<T, false, false>;
}

}  // namespace

template <typename T>
typename Update<T>::Loop LoopOf(const Optimizer& o) {
  switch (o.kind) {
    case Kind::kSgd:
      if (o.momentum == 0) return Sgd<T>;
      return o.nesterov ? SgdMomentum<T, true> : SgdMomentum<T, false>;
    case Kind::kAdagrad:
      return Adagrad<T>;
    case Kind::kAdam:
    case Kind::kAdamW:
      return o.amsgrad ? Adam<T, true> : Adam<T, false>;
    case Kind::kNadam:
      return Nadam<T>;
    case Kind::kAdamax:
      return Adamax<T>;
    case Kind::kAdadelta:
      return Adadelta<T>;
    case Kind::kFtrl:
      return o.learning_rate_power == -0.5 ? Ftrl<T, true> : Ftrl<T, false>;
    case Kind::kLion:
      return Lion<T>;
    case Kind::kRmsprop:
      break;
  }
  return RmspropLoop<T>(o);
}

template Update<float>::Loop LoopOf<float>(const Optimizer&);
template Update<double>::Loop LoopOf<double>(const Optimizer&);

}  // namespace tfjob::optimizer::internal
