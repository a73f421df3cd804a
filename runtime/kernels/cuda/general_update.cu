// Updates variables with any optimizer. The arithmetic is that of the optimizers on CPUs
// (optimizer/loops.cc).
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/kernels/cuda/update_element.h"

namespace tfjob::kernels::cuda {
namespace {

using Parameter = GeneralUpdateParameter;

TFJOB_DEVICE float& SlotOf(const Parameter& p, const UpdateElement& at, int slot) {
  return p.slots[slot][at.row * p.slot_strides[slot] + at.col];
}

// Returns the same result as std::max, even for NaN.
TFJOB_DEVICE float Larger(float a, float b) {
  return a < b ? b : a;
}

TFJOB_DEVICE void SgdStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                          float& w, float g) {
  const float change = n.rate * g;
  if (p.momentum == 0.0f) {
    w -= change;
    return;
  }
  float& m = SlotOf(p, at, 0);
  m = m * p.momentum - change;
  w += p.nesterov != 0 ? m * p.momentum - change : m;
}

TFJOB_DEVICE void AdagradStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                              float& w, float g) {
  float& sum = SlotOf(p, at, 0);
  sum += g * g;
  w -= n.rate * g / sqrtf(sum + p.epsilon);
}

TFJOB_DEVICE void AdamStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                           float& w, float g) {
  float& m = SlotOf(p, at, 0);
  float& v = SlotOf(p, at, 1);
  m += (g - m) * p.take_1;
  v += (g * g - v) * p.take_2;
  float second = v;
  if (p.amsgrad != 0) {
    float& most = SlotOf(p, at, 2);
    second = Larger(second, most);
    most = second;
  }
  w -= m * n.rate / (sqrtf(second) + p.epsilon);
}

TFJOB_DEVICE void NadamStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                            float& w, float g) {
  float& m = SlotOf(p, at, 0);
  float& v = SlotOf(p, at, 1);
  m += (g - m) * p.take_1;
  v += (g * g - v) * p.take_2;
  w -= (n.rate * m + n.gradient_rate * g) / (sqrtf(v * n.correction) + p.epsilon);
}

TFJOB_DEVICE void AdamaxStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                             float& w, float g) {
  float& m = SlotOf(p, at, 0);
  float& norm = SlotOf(p, at, 1);
  m += (g - m) * p.take_1;
  norm = Larger(p.keep_2 * norm, fabsf(g));
  w -= n.rate * m / (norm + p.epsilon);
}

TFJOB_DEVICE void RmspropStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                              float& w, float g) {
  float& v = SlotOf(p, at, 0);
  v = p.keep_1 * v + p.take_1 * (g * g);
  float denominator = v + p.epsilon;
  if (p.centered != 0) {
    float& mean = SlotOf(p, at, 1);
    mean = p.keep_1 * mean + p.take_1 * g;
    denominator = v - mean * mean + p.epsilon;
  }
  float change = n.rate * g / sqrtf(denominator);
  if (p.momentum != 0.0f) {
    float& m = SlotOf(p, at, p.centered != 0 ? 2 : 1);
    change = p.momentum * m + change;
    m = change;
  }
  w -= change;
}

TFJOB_DEVICE void AdadeltaStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                               float& w, float g) {
  float& squares = SlotOf(p, at, 0);
  float& changes = SlotOf(p, at, 1);
  squares = p.keep_1 * squares + p.take_1 * (g * g);
  const float change = sqrtf(changes + p.epsilon) * g / sqrtf(squares + p.epsilon);
  changes = p.keep_1 * changes + p.take_1 * (change * change);
  w -= n.rate * change;
}

TFJOB_DEVICE void FtrlStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                           float& w, float g) {
  float& sum = SlotOf(p, at, 0);
  float& linear = SlotOf(p, at, 1);
  const float before = sum, after = before + g * g;
  const float root_before = p.root != 0 ? sqrtf(before) : powf(before, p.power);
  const float root_after = p.root != 0 ? sqrtf(after) : powf(after, p.power);
  const float z = linear + g + p.shrink * w - (root_after - root_before) / n.rate * w;
  linear = z;
  sum = after;
  const float high = Larger(z, -p.l1);
  w = ((p.l1 < high ? p.l1 : high) - z) / (root_after / n.rate + n.l2);
}

TFJOB_DEVICE void LionStep(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                           float& w, float g) {
  float& m = SlotOf(p, at, 0);
  const float direction = p.keep_1 * m + p.take_1 * g;
  // NaN remains NaN.
  const float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : direction;
  w -= n.rate * sign;
  m = p.keep_2 * m + p.take_2 * g;
}

TFJOB_DEVICE void StepOfKind(const Parameter& p, const StepNumbers& n, const UpdateElement& at,
                             float& w, float g) {
  switch (p.kind) {
    case UpdateKind::kSgd:
      return SgdStep(p, n, at, w, g);
    case UpdateKind::kAdagrad:
      return AdagradStep(p, n, at, w, g);
    case UpdateKind::kAdam:
    case UpdateKind::kAdamW:
      return AdamStep(p, n, at, w, g);
    case UpdateKind::kRmsprop:
      return RmspropStep(p, n, at, w, g);
    case UpdateKind::kNadam:
      return NadamStep(p, n, at, w, g);
    case UpdateKind::kAdamax:
      return AdamaxStep(p, n, at, w, g);
    case UpdateKind::kAdadelta:
      return AdadeltaStep(p, n, at, w, g);
    case UpdateKind::kFtrl:
      return FtrlStep(p, n, at, w, g);
    case UpdateKind::kLion:
      return LionStep(p, n, at, w, g);
  }
}

}  // namespace

TFJOB_KERNEL(GeneralUpdate, GeneralUpdateParameter, kUpdateThreads) {
  if (Refused(p.refusal)) return;
  const UpdateElement at = ElementOf(p);
  if (!at.exists) return;
  const StepNumbers n = *p.numbers;
  float& w = p.variable[at.row * p.variable_stride + at.col];
  float g = at.gradient;
  if (p.accumulator >= 0 && p.adds != 0) {
    float& sum = SlotOf(p, at, p.accumulator);
    sum += g;
    g = sum;
  }
  if (n.only_adds == 0) {
    DecayElement(w, n.decay);
    StepOfKind(p, n, at, w, g * p.scale);
    if (p.accumulator >= 0) SlotOf(p, at, p.accumulator) = 0.0f;
  }
  if (p.average < 0) return;
  float& average = SlotOf(p, at, p.average);
  average = n.keep_average * average + (1.0f - n.keep_average) * w;
  if (n.overwrites != 0) w = average;
}

}  // namespace tfjob::kernels::cuda
