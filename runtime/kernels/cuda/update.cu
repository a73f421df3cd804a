// Applies optimizers to many variables in one launch.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/kernels/cuda/update_element.h"

namespace tfjob::kernels::cuda {
namespace {

// Returns the index of the tensor that this block belongs to.
TFJOB_DEVICE int TensorOfBlock(const UpdateTensors& update) {
  int tensor = 0;
  while (tensor + 1 < update.tensors &&
         update.first_block[tensor + 1] <= static_cast<int>(blockIdx.x))
    ++tensor;
  return tensor;
}

// Returns the index, within the tensor, of the first element that this block updates.
TFJOB_DEVICE int64_t FirstOfBlock(const UpdateTensors& update, int tensor) {
  return static_cast<int64_t>(static_cast<int>(blockIdx.x) - update.first_block[tensor]) *
         kUpdateChunk;
}

// Returns whether the tensor can be read and written in groups of four elements.
TFJOB_DEVICE bool IsAligned(const UpdateTensor& t) {
  const uintptr_t addresses =
      reinterpret_cast<uintptr_t>(t.variable) | reinterpret_cast<uintptr_t>(t.gradient) |
      reinterpret_cast<uintptr_t>(t.first) | reinterpret_cast<uintptr_t>(t.second);
  return addresses % 16 == 0;
}

TFJOB_DEVICE float RateOf(const UpdateRate& rate) {
  return rate.scheduled != nullptr ? *rate.scheduled : rate.constant;
}

struct AdamRates {
  float rate, take_1, take_2, epsilon, decay;
};

// Returns the rates of this step. `rate` is learning_rate · √(1 - beta_2^t) / (1 - beta_1^t),
// computed without subtracting numbers that are almost equal.
TFJOB_DEVICE AdamRates RatesOf(const AdamCoefficients& p) {
  const float t = static_cast<float>(*p.step + 1), rate = RateOf(p.rate);
  return {rate * sqrtf(-expm1f(t * p.log_beta_2)) / -expm1f(t * p.log_beta_1), p.take_1, p.take_2,
          p.epsilon, rate * p.weight_decay};
}

TFJOB_DEVICE void AdamElement(float& w, float g, float& m, float& v, const AdamRates& rates) {
  DecayElement(w, rates.decay);
  m += (g - m) * rates.take_1;
  v += (g * g - v) * rates.take_2;
  w -= m * rates.rate / (sqrtf(v) + rates.epsilon);
}

template <typename T>
TFJOB_DEVICE void AdamQuad(const UpdateTensor& t, int64_t i, const AdamRates& rates) {
  float4 w = Load(t.variable + i), m = Load(t.first + i), v = Load(t.second + i);
  const float4 g = Load(static_cast<const T*>(t.gradient) + i);
  AdamElement(w.x, g.x, m.x, v.x, rates);
  AdamElement(w.y, g.y, m.y, v.y, rates);
  AdamElement(w.z, g.z, m.z, v.z, rates);
  AdamElement(w.w, g.w, m.w, v.w, rates);
  Store(t.variable + i, w);
  Store(t.first + i, m);
  Store(t.second + i, v);
}

struct SgdRates {
  float rate, momentum, decay;
  int nesterov;
};

TFJOB_DEVICE SgdRates RatesOf(const SgdCoefficients& p) {
  const float rate = RateOf(p.rate);
  return {rate, p.momentum, rate * p.weight_decay, p.nesterov};
}

TFJOB_DEVICE void PlainElement(float& w, float g, const SgdRates& rates) {
  DecayElement(w, rates.decay);
  w -= rates.rate * g;
}

TFJOB_DEVICE void MomentumElement(float& w, float g, float& m, const SgdRates& rates) {
  DecayElement(w, rates.decay);
  const float change = rates.rate * g;
  m = rates.momentum * m - change;
  w += rates.nesterov != 0 ? rates.momentum * m - change : m;
}

TFJOB_DEVICE void SgdElement(const UpdateTensor& t, int64_t i, const SgdRates& rates) {
  const float gradient = ReadFloat(t.gradient, t.gradient_type, i);
  if (t.first == nullptr) {
    PlainElement(t.variable[i], gradient, rates);
  } else {
    MomentumElement(t.variable[i], gradient, t.first[i], rates);
  }
}

template <typename T>
TFJOB_DEVICE void SgdQuad(const UpdateTensor& t, int64_t i, const SgdRates& rates) {
  float4 w = Load(t.variable + i);
  const float4 g = Load(static_cast<const T*>(t.gradient) + i);
  PlainElement(w.x, g.x, rates);
  PlainElement(w.y, g.y, rates);
  PlainElement(w.z, g.z, rates);
  PlainElement(w.w, g.w, rates);
  Store(t.variable + i, w);
}

template <typename T>
TFJOB_DEVICE void SgdMomentumQuad(const UpdateTensor& t, int64_t i, const SgdRates& rates) {
  float4 w = Load(t.variable + i), m = Load(t.first + i);
  const float4 g = Load(static_cast<const T*>(t.gradient) + i);
  MomentumElement(w.x, g.x, m.x, rates);
  MomentumElement(w.y, g.y, m.y, rates);
  MomentumElement(w.z, g.z, m.z, rates);
  MomentumElement(w.w, g.w, m.w, rates);
  Store(t.variable + i, w);
  Store(t.first + i, m);
}

}  // namespace

TFJOB_KERNEL(ApplyAdam, AdamParameter, kUpdateThreads) {
  __shared__ AdamRates rates;
  __shared__ int shared_tensor;
  if (threadIdx.x == 0) {
    rates = RatesOf(p.adam);
    shared_tensor = TensorOfBlock(p.update);
  }
  __syncthreads();
  const UpdateTensor& tensor = p.update.tensor[shared_tensor];
  const bool aligned = IsAligned(tensor);
  const int64_t begin = FirstOfBlock(p.update, shared_tensor);
  // If the update was refused, do not return here, because ptxas would then use local memory.
  const int64_t count = Refused(p.adam.refusal) ? 0 : tensor.count;
  for (int k = 0; k < kUpdateChunk / (kUpdateThreads * 4); ++k) {
    const int64_t i = begin + (k * kUpdateThreads + static_cast<int64_t>(threadIdx.x)) * 4;
    if (aligned && i + 4 <= count) {
      WithFloats(tensor.gradient_type,
                 [&](auto zero) { AdamQuad<decltype(zero)>(tensor, i, rates); });
      continue;
    }
    for (int64_t j = i; j < count && j < i + 4; ++j)
      AdamElement(tensor.variable[j], ReadFloat(tensor.gradient, tensor.gradient_type, j),
                  tensor.first[j], tensor.second[j], rates);
  }
}

TFJOB_KERNEL(ApplySgd, SgdParameter, kUpdateThreads) {
  __shared__ int shared_tensor;
  if (threadIdx.x == 0) shared_tensor = TensorOfBlock(p.update);
  __syncthreads();
  const UpdateTensor& tensor = p.update.tensor[shared_tensor];
  const SgdRates rates = RatesOf(p.sgd);
  const bool aligned = IsAligned(tensor);
  const int64_t begin = FirstOfBlock(p.update, shared_tensor);
  // If the update was refused, do not return here, because ptxas would then use local memory.
  const int64_t count = Refused(p.sgd.refusal) ? 0 : tensor.count;
  for (int k = 0; k < kUpdateChunk / (kUpdateThreads * 4); ++k) {
    const int64_t i = begin + (k * kUpdateThreads + static_cast<int64_t>(threadIdx.x)) * 4;
    if (aligned && i + 4 <= count) {
      WithFloats(tensor.gradient_type, [&](auto zero) {
        if (tensor.first == nullptr) return SgdQuad<decltype(zero)>(tensor, i, rates);
        SgdMomentumQuad<decltype(zero)>(tensor, i, rates);
      });
      continue;
    }
    for (int64_t j = i; j < count && j < i + 4; ++j) SgdElement(tensor, j, rates);
  }
}

TFJOB_KERNEL(ApplyAdamRows, AdamRowsParameter, kUpdateThreads) {
  __shared__ AdamRates rates;
  if (Refused(p.adam.refusal)) return;
  if (threadIdx.x == 0) rates = RatesOf(p.adam);
  __syncthreads();
  const UpdateElement at = ElementOf(p.update);
  if (!at.exists) return;
  AdamElement(p.update.variable[at.row * p.update.variable_stride + at.col], at.gradient,
              p.update.first[at.row * p.update.first_stride + at.col],
              p.update.second[at.row * p.update.second_stride + at.col], rates);
}

TFJOB_KERNEL(ApplySgdRows, SgdRowsParameter, kUpdateThreads) {
  if (Refused(p.sgd.refusal)) return;
  const UpdateElement at = ElementOf(p.update);
  if (!at.exists) return;
  const SgdRates rates = RatesOf(p.sgd);
  float& w = p.update.variable[at.row * p.update.variable_stride + at.col];
  if (p.update.first == nullptr) return PlainElement(w, at.gradient, rates);
  MomentumElement(w, at.gradient, p.update.first[at.row * p.update.first_stride + at.col], rates);
}

}  // namespace tfjob::kernels::cuda
