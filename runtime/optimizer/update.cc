#include "runtime/optimizer/update.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/optimizer/loops.h"

namespace tfjob::optimizer::internal {
namespace {

// The number of elements that are updated at a time. Their values stay in the cache for all of the
// loops below.
constexpr int64_t kBlock = 2048;

// Returns Nadam's momentum schedule: u_t = beta_1 (1 - 0.96^t / 2).
double NadamMomentum(double beta_1, double t) {
  return beta_1 * (1 - 0.5 * std::pow(0.96, t));
}

template <typename T>
void CorrectNadam(const Optimizer& o, double rate, double t, Coefficients<T>& c) {
  const double next = NadamMomentum(o.beta_1, t + 1);
  const double product = NadamProduct(o.beta_1, static_cast<int64_t>(t));
  c.rate = static_cast<T>(rate * next / (1 - product * next));
  c.gradient_rate = static_cast<T>(rate * (1 - NadamMomentum(o.beta_1, t)) / (1 - product));
  c.correction = static_cast<T>(1 / (1 - std::pow(o.beta_2, t)));
}

template <typename T>
Coefficients<T> MakeCoefficients(const Optimizer& o, double rate, double t) {
  const bool decays = o.kind == Kind::kRmsprop || o.kind == Kind::kAdadelta;
  const double keep_1 = decays ? o.rho : o.beta_1;
  Coefficients<T> c{.rate = static_cast<T>(rate),
                    .momentum = static_cast<T>(o.momentum),
                    .keep_1 = static_cast<T>(keep_1),
                    .take_1 = static_cast<T>(1 - keep_1),
                    .keep_2 = static_cast<T>(o.beta_2),
                    .take_2 = static_cast<T>(1 - o.beta_2),
                    .epsilon = static_cast<T>(o.epsilon)};
  if (o.kind == Kind::kAdam || o.kind == Kind::kAdamW) {
    c.rate =
        static_cast<T>(rate * std::sqrt(1 - std::pow(o.beta_2, t)) / (1 - std::pow(o.beta_1, t)));
  } else if (o.kind == Kind::kAdamax) {
    c.rate = static_cast<T>(rate / (1 - std::pow(o.beta_1, t)));
  } else if (o.kind == Kind::kNadam) {
    CorrectNadam(o, rate, t, c);
  } else if (o.kind == Kind::kFtrl) {
    c.l1 = static_cast<T>(o.l1_regularization_strength);
    c.l2 = static_cast<T>(2 * o.l2_regularization_strength + o.beta / rate);
    c.shrink = static_cast<T>(2 * o.l2_shrinkage_regularization_strength);
    c.power = static_cast<T>(-o.learning_rate_power);
  }
  return c;
}

template <typename T>
void Accumulate(int64_t count, T scale, const T* __restrict gradient, T* __restrict sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] += scale * gradient[i];
}

template <typename T>
void Decay(int64_t count, T decay, T* w) {
  for (int64_t i = 0; i < count; ++i) w[i] -= w[i] * decay;
}

template <typename T>
void Average(int64_t count, T keep, const T* __restrict w, T* __restrict average) {
  const T take = 1 - keep;
  for (int64_t i = 0; i < count; ++i) average[i] = keep * average[i] + take * w[i];
}

template <typename T>
void UpdateBlock(const Update<T>& u, int64_t count, T* variable, const T* gradient,
                 T* const* slots) {
  if (u.accumulator >= 0 && u.adds) {
    T* const sum = slots[u.accumulator];
    Accumulate(count, u.arriving, gradient, sum);
    gradient = sum;
  }
  if (!u.only_adds) {
    if (u.decay != 0) Decay(count, u.decay, variable);
    u.loop(u.coefficients, count, variable, gradient, slots);
    if (u.accumulator >= 0) std::fill_n(slots[u.accumulator], count, T{0});
  }
  if (u.average < 0) return;
  T* const average = slots[u.average];
  Average(count, u.keep_average, variable, average);
  if (u.overwrite) std::copy_n(average, count, variable);
}

}  // namespace

template <typename T>
void Update<T>::operator()(int64_t count, T* variable, const T* gradient, T* const* slots) const {
  if (decay == 0 && average < 0 && accumulator < 0) {
    loop(coefficients, count, variable, gradient, slots);
    return;
  }
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    std::array<T*, kMaxSlots> at{};
    for (size_t i = 0; i < at.size(); ++i) at[i] = slots[i] == nullptr ? nullptr : slots[i] + begin;
    UpdateBlock(*this, std::min(kBlock, count - begin), variable + begin, gradient + begin,
                at.data());
  }
}

template <typename T>
Update<T> MakeUpdate(const Optimizer& o, int64_t step, T gradient_scale, Part part) {
  const int64_t every = std::max<int64_t>(1, o.gradient_accumulation_steps);
  const int64_t updates = step / every;  // number of updates before this one
  const double rate = RateAt(o.schedule, o.learning_rate, step);
  Update<T> update{.loop = LoopOf<T>(o),
                   .coefficients = MakeCoefficients<T>(o, rate, static_cast<double>(updates) + 1),
                   .decay = static_cast<T>(rate * o.weight_decay)};
  update.coefficients.scale = gradient_scale;
  if (o.use_ema) {
    update.average = AverageSlot(o);
    update.keep_average = updates == 0 ? 0 : static_cast<T>(o.ema_momentum);
    update.overwrite =
        o.ema_overwrite_frequency > 0 && (updates + 1) % o.ema_overwrite_frequency == 0;
  }
  if (every > 1) {
    update.accumulator = SlotCount(o) - 1;
    update.arriving = gradient_scale;
    update.only_adds = (step + 1) % every != 0;
    update.coefficients.scale = T{1} / static_cast<T>(every);
  }
  if (part == Part::kUpdate) {
    update.adds = false;
    update.coefficients.scale = gradient_scale;
  } else if (part == Part::kAccumulate) {
    update.only_adds = true;
    update.average = -1;
  }
  return update;
}

template struct Update<float>;
template struct Update<double>;
template Update<float> MakeUpdate(const Optimizer&, int64_t, float, Part);
template Update<double> MakeUpdate(const Optimizer&, int64_t, double, Part);

}  // namespace tfjob::optimizer::internal
