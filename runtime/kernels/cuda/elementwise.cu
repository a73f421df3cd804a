// Computes single elementwise ops, and programs of several ops.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// The functions are the same as in cpu/functions.h: Maximum, Minimum and Relu return NaN if an
// operand is NaN.
TFJOB_DEVICE float Compute(ElementOp op, float a, float b, float c) {
  switch (op) {
    case ElementOp::kAdd:
      return a + b;
    case ElementOp::kSub:
      return a - b;
    case ElementOp::kMul:
      return a * b;
    case ElementOp::kDiv:
      return a / b;
    case ElementOp::kMaximum:
      return a > b || a != a ? a : b;
    case ElementOp::kMinimum:
      return a < b || a != a ? a : b;
    case ElementOp::kPow:
      return powf(a, b);
    case ElementOp::kNeg:
      return -a;
    case ElementOp::kAbs:
      return fabsf(a);
    case ElementOp::kSquare:
      return a * a;
    case ElementOp::kSqrt:
      return sqrtf(a);
    case ElementOp::kRsqrt:
      return 1.0f / sqrtf(a);
    case ElementOp::kExp:
      return expf(a);
    case ElementOp::kLog:
      return logf(a);
    case ElementOp::kRelu:
      return a < 0.0f ? 0.0f : a;
    case ElementOp::kSigmoid:
      return 1.0f / (1.0f + expf(-a));
    case ElementOp::kTanh:
      return tanhf(a);
    case ElementOp::kReluGrad:
      return b > 0.0f ? a : 0.0f;
    case ElementOp::kSigmoidGrad:
      return b * a * (1.0f - a);
    case ElementOp::kTanhGrad:
      return b * (1.0f - a * a);
    case ElementOp::kClip:
      a = a < b ? b : a;
      return a > c ? c : a;
    case ElementOp::kCopy:
      break;
  }
  return a;
}

TFJOB_DEVICE float Operand(const ElementwiseParameter& p, const ElementSource& source,
                           const float* results, uint32_t row, uint32_t col) {
  switch (source.kind) {
    case ElementSource::kLiteral:
      return source.literal;
    case ElementSource::kStep:
      return results[source.index];
    case ElementSource::kInput:
      break;
  }
  const ElementInput& input = p.input[source.index];
  return input.data[row * input.row_stride + static_cast<int64_t>(col) * input.column_step];
}

}  // namespace

TFJOB_KERNEL(Elementwise, ElementwiseParameter, kElementThreads) {
  const uint32_t element = blockIdx.x * kElementThreads + threadIdx.x;
  if (element >= p.count) return;
  const uint32_t row = element / p.cols, col = element - row * p.cols;
  float results[kElementSteps];
  for (int i = 0; i < p.steps; ++i) {
    const ElementStep& step = p.step[i];
    results[i] = Compute(step.op, Operand(p, step.source[0], results, row, col),
                         Operand(p, step.source[1], results, row, col),
                         Operand(p, step.source[2], results, row, col));
  }
  p.out[row * p.out_stride + col] = results[p.steps - 1];
}

}  // namespace tfjob::kernels::cuda
