// Computes learning rates (optimizer/schedule.h) and the other numbers that depend on the step. The
// arithmetic is that of the optimizers on CPUs.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

TFJOB_DEVICE double Quotient(const LearningRateParameter& p, double step) {
  const double quotient = step / p.decay_steps;
  return p.staircase != 0 ? floor(quotient) : quotient;
}

TFJOB_DEVICE double PolynomialRate(const LearningRateParameter& p, double step) {
  double steps = p.decay_steps;
  if (p.cycle != 0) {
    steps *= fmax(1.0, ceil(step / steps));
  } else {
    step = fmin(step, steps);
  }
  return (p.initial - p.end_learning_rate) * pow(1 - step / steps, p.power) + p.end_learning_rate;
}

TFJOB_DEVICE double CosineRate(const LearningRateParameter& p, double step) {
  double initial = p.initial;
  if (p.warmup_target >= 0) {
    if (step < p.warmup_steps) return initial + (p.warmup_target - initial) * step / p.warmup_steps;
    step -= p.warmup_steps;
    initial = p.warmup_target;
  }
  const double wave = 0.5 * (1 + CosPi(fmin(step, p.decay_steps) / p.decay_steps));
  return initial * ((1 - p.alpha) * wave + p.alpha);
}

// Returns the total length of the first `count` decays, in multiples of the first decay's length.
TFJOB_DEVICE double LengthOf(const LearningRateParameter& p, double count) {
  return p.t_mul == 1 ? count : (pow(p.t_mul, count) - 1) / (p.t_mul - 1);
}

TFJOB_DEVICE double RestartingRate(const LearningRateParameter& p, double step) {
  const double passed = step / p.decay_steps;
  double restarts = floor(p.t_mul == 1 ? passed : log(1 + passed * (p.t_mul - 1)) / log(p.t_mul));
  // Correct rounding errors of the logarithms. Otherwise, the result could be the end of one decay
  // instead of the start of the next decay.
  if (LengthOf(p, restarts + 1) <= passed) restarts += 1;
  if (LengthOf(p, restarts) > passed) restarts -= 1;
  const double part = (passed - LengthOf(p, restarts)) / pow(p.t_mul, restarts);
  const double wave = 0.5 * pow(p.m_mul, restarts) * (1 + CosPi(part));
  return p.initial * ((1 - p.alpha) * wave + p.alpha);
}

TFJOB_DEVICE double PieceRate(const LearningRateParameter& p, double step) {
  int piece = 0;
  while (piece < p.pieces && p.boundaries[piece] < step) ++piece;
  return p.values[piece];
}

TFJOB_DEVICE double RateAt(const LearningRateParameter& p, double step) {
  switch (p.decay) {
    case RateDecay::kNone:
      break;
    case RateDecay::kExponential:
      return p.initial * pow(p.decay_rate, Quotient(p, step));
    case RateDecay::kInverseTime:
      return p.initial / (1 + p.decay_rate * Quotient(p, step));
    case RateDecay::kPolynomial:
      return PolynomialRate(p, step);
    case RateDecay::kCosine:
      return CosineRate(p, step);
    case RateDecay::kCosineRestarts:
      return RestartingRate(p, step);
    case RateDecay::kPiecewiseConstant:
      return PieceRate(p, step);
  }
  return p.initial;
}

// Returns Nadam's u_t.
TFJOB_DEVICE double NadamMomentum(double beta_1, double t) {
  return beta_1 * (1 - 0.5 * pow(0.96, t));
}

// Returns Nadam's u_1 u_2 … u_t. After 1000 factors, 0.96^t is too small to change the product.
TFJOB_DEVICE double NadamProduct(double beta_1, double t) {
  double product = pow(beta_1, t), power = 1;
  for (int i = 1; i <= 1000 && i <= t; ++i) {
    power *= 0.96;
    product *= 1 - 0.5 * power;
  }
  return product;
}

// Sets the numbers that depend on the kind of optimizer. `t` is the index of this update, counted
// from 1.
TFJOB_DEVICE void SetRates(const UpdateNumbersParameter& p, double rate, double t, StepNumbers& n) {
  n.rate = static_cast<float>(rate);
  if (p.kind == UpdateKind::kAdam || p.kind == UpdateKind::kAdamW) {
    n.rate = static_cast<float>(rate * sqrt(1 - pow(p.beta_2, t)) / (1 - pow(p.beta_1, t)));
  } else if (p.kind == UpdateKind::kAdamax) {
    n.rate = static_cast<float>(rate / (1 - pow(p.beta_1, t)));
  } else if (p.kind == UpdateKind::kNadam) {
    const double next = NadamMomentum(p.beta_1, t + 1), product = NadamProduct(p.beta_1, t);
    n.rate = static_cast<float>(rate * next / (1 - product * next));
    n.gradient_rate = static_cast<float>(rate * (1 - NadamMomentum(p.beta_1, t)) / (1 - product));
    n.correction = static_cast<float>(1 / (1 - pow(p.beta_2, t)));
  } else if (p.kind == UpdateKind::kFtrl) {
    n.l2 = static_cast<float>(2 * p.l2 + p.beta / rate);
  }
}

}  // namespace

TFJOB_KERNEL(LearningRate, LearningRateParameter, 1) {
  *p.rate = static_cast<float>(RateAt(p, static_cast<double>(*p.step)));
}

TFJOB_KERNEL(UpdateNumbers, UpdateNumbersParameter, 1) {
  const int64_t step = *p.schedule.step, updates = step / p.every;
  const double rate = RateAt(p.schedule, static_cast<double>(step));
  StepNumbers n{0.0f, 0.0f, 0.0f, 0.0f, static_cast<float>(rate * p.weight_decay), 0.0f, 0, 0};
  SetRates(p, rate, static_cast<double>(updates) + 1, n);
  if (updates > 0) n.keep_average = static_cast<float>(p.ema_momentum);
  if (p.overwrite_frequency > 0 && (updates + 1) % p.overwrite_frequency == 0) n.overwrites = 1;
  if (p.only_adds != 0 || (step + 1) % p.every != 0) n.only_adds = 1;
  *p.numbers = n;
}

}  // namespace tfjob::kernels::cuda
