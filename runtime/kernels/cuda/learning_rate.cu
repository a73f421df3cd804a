// Computes learning rates that depend on the step (optimizer/schedule.h).
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
    if (step < p.warmup_steps)
      return initial + (p.warmup_target - initial) * step / p.warmup_steps;
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
  double restarts =
      floor(p.t_mul == 1 ? passed : log(1 + passed * (p.t_mul - 1)) / log(p.t_mul));
  // The logarithms may have a rounding error.
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

}  // namespace

TFJOB_KERNEL(LearningRate, LearningRateParameter, 1) {
  *p.rate = static_cast<float>(RateAt(p, static_cast<double>(*p.step)));
}

}  // namespace tfjob::kernels::cuda
