// Implements softmax and the cross-entropies, one row at a time. The maximum of the row is
// subtracted first, so that no exponential overflows. The loss is computed from the logarithm of
// the sum of exponentials, not from the logarithm of a probability, which may be 0.
#include <limits>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/lanes.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr int64_t kSoftmaxWeight = 8;

template <typename T>
T RowMaximum(int64_t count, const T* x) {
  return ReduceLanes(count, x, -std::numeric_limits<T>::infinity(), Maximum(), Copy());
}

// Sets y = exp(x - maximum) and returns the sum of y. y may be x.
template <typename T>
T ShiftedExponentials(int64_t count, T maximum, const T* x, T* y) {
  Map(count, [maximum](T value) { return Exp(value - maximum); }, y, x);
  return ReduceLanes(count, y, T{0}, Add(), Copy());
}

template <typename T>
void SoftmaxRow(int64_t count, const T* x, T* y) {
  const T sum = ShiftedExponentials(count, RowMaximum(count, x), x, y);
  Map(count, [scale = 1 / sum](T value) { return value * scale; }, y, y);
}

template <typename T>
void LogSoftmaxRow(int64_t count, const T* x, T* y) {
  const T maximum = RowMaximum(count, x);
  T sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += Exp(x[i] - maximum);
  // Subtract the maximum before log_sum. If the two were added first, the smaller one could be lost
  // by rounding.
  Map(count, [maximum, log_sum = Log(sum)](T value) { return (value - maximum) - log_sum; }, y, x);
}

template <typename T>
class Softmax : public Kernel {
 public:
  Softmax(const KernelRequest& request, bool logarithm)
      : in_(request.inputs[0]), out_stride_(request.outputs[0].row_stride), log_(logarithm) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* x = static_cast<const T*>(inputs[0]);
    auto* y = static_cast<T*>(outputs[0]);
    const int64_t cols = in_.cols(), x_stride = in_.row_stride;
    if (cols == 0) return;
    const int64_t grain = 1 + kGrain / kSoftmaxWeight / cols;
    stream.ParallelFor(in_.rows(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        (log_ ? LogSoftmaxRow<T> : SoftmaxRow<T>)(cols, x + row * x_stride, y + row * out_stride_);
      }
    });
  }

 private:
  Operand in_;
  int64_t out_stride_;
  bool log_;
};

// Sets dx = (dy - Σ dy y) y. dx may be y or dy.
template <typename T>
void SoftmaxGradRow(int64_t count, const T* y, const T* dy, T* dx) {
  const T dot = ReduceProducts(count, y, dy);
  Map(count, [dot](T value, T gradient) { return (gradient - dot) * value; }, dx, y, dy);
}

template <typename T>
class SoftmaxGrad : public Kernel {
 public:
  explicit SoftmaxGrad(const KernelRequest& request)
      : y_(request.inputs[0]),
        dy_stride_(request.inputs[1].row_stride),
        dx_stride_(request.outputs[0].row_stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* y = static_cast<const T*>(inputs[0]);
    const auto* dy = static_cast<const T*>(inputs[1]);
    auto* dx = static_cast<T*>(outputs[0]);
    const int64_t cols = y_.cols();
    const int64_t grain = 1 + kGrain / 2 / std::max<int64_t>(1, cols);
    stream.ParallelFor(y_.rows(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        SoftmaxGradRow(cols, y + row * y_.row_stride, dy + row * dy_stride_, dx + row * dx_stride_);
    });
  }

 private:
  Operand y_;
  int64_t dy_stride_, dx_stride_;
};

// Sets backprop = softmax(x) - one-hot(label) and returns the loss. If the label is out of range,
// sets backprop to NaN and returns NaN.
template <typename T, typename Label>
T SparseCrossEntropyRow(int64_t classes, const T* x, Label label, T* backprop) {
  const auto index = static_cast<int64_t>(label);
  if (index < 0 || index >= classes) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    std::fill(backprop, backprop + classes, nan);
    return nan;
  }
  const T maximum = RowMaximum(classes, x);
  const T logit = x[index] - maximum;  // read first, because `backprop` may be x
  const T sum = ShiftedExponentials(classes, maximum, x, backprop);
  Map(classes, [scale = 1 / sum](T value) { return value * scale; }, backprop, backprop);
  backprop[index] -= 1;
  return Log(sum) - logit;
}

// Sets backprop = softmax(x) Σ label - label and returns the loss, Σ label (log Σ exp(x) - x). If
// the labels sum to 1, the results are those of TensorFlow.
template <typename T>
T DenseCrossEntropyRow(int64_t classes, const T* x, const T* labels, T* backprop) {
  const T maximum = RowMaximum(classes, x);
  T sum = 0, weight = 0, dot = 0;
  for (int64_t i = 0; i < classes; ++i) {
    sum += Exp(x[i] - maximum);
    weight += labels[i];
    dot += labels[i] * (x[i] - maximum);
  }
  Map(
      classes,
      [maximum, scale = weight / sum](T value, T label) {
        return Exp(value - maximum) * scale - label;
      },
      backprop, x, labels);
  return Log(sum) * weight - dot;
}

template <typename T, typename Label>
class CrossEntropy : public Kernel {
 public:
  CrossEntropy(const KernelRequest& request, bool sparse)
      : logits_(request.inputs[0]),
        labels_stride_(request.inputs[1].row_stride),
        backprop_stride_(request.outputs[1].row_stride),
        sparse_(sparse) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* x = static_cast<const T*>(inputs[0]);
    const auto* labels = static_cast<const Label*>(inputs[1]);
    auto* loss = static_cast<T*>(outputs[0]);
    auto* backprop = static_cast<T*>(outputs[1]);
    const int64_t classes = logits_.cols();
    const int64_t grain = 1 + kGrain / kSoftmaxWeight / std::max<int64_t>(1, classes);
    stream.ParallelFor(logits_.rows(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* row_x = x + row * logits_.row_stride;
        T* row_backprop = backprop + row * backprop_stride_;
        if (sparse_) {
          loss[row] = SparseCrossEntropyRow(classes, row_x, labels[row], row_backprop);
        } else if constexpr (std::is_same_v<T, Label>) {
          loss[row] =
              DenseCrossEntropyRow(classes, row_x, labels + row * labels_stride_, row_backprop);
        }
      }
    });
  }

 private:
  Operand logits_;
  int64_t labels_stride_, backprop_stride_;
  bool sparse_;
};

template <bool kLogarithm>
Prepared PrepareSoftmax(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  RETURN_IF_ERROR(ExpectAlike(request, 0, 1));
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<Softmax<T>>(request, kLogarithm); });
}

Prepared PrepareSoftmaxGrad(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(ExpectAlike(request, 0, 2));
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<SoftmaxGrad<T>>(request); });
}

Status CheckCrossEntropy(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 2));
  const Operand& logits = request.inputs[0];
  if (logits.shape.rank() != 2) return InvalidArgument("the logits must be a matrix");
  RETURN_IF_ERROR(ExpectShape(request.outputs[0], Shape({logits.rows()})));
  RETURN_IF_ERROR(ExpectShape(request.outputs[1], logits.shape));
  if (request.outputs[0].dtype != logits.dtype || request.outputs[1].dtype != logits.dtype) {
    return InvalidArgument("the outputs must have the logits' dtype");
  }
  return OkStatus();
}

Prepared PrepareSparse(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckCrossEntropy(request));
  const Operand& labels = request.inputs[1];
  RETURN_IF_ERROR(ExpectShape(labels, Shape({request.inputs[0].rows()})));
  return ForFloat(request.inputs[0].dtype, [&]<typename T>(Type<T>) -> Prepared {
    if (labels.dtype == DType::kInt32) return Make<CrossEntropy<T, int32_t>>(request, true);
    if (labels.dtype == DType::kInt64) return Make<CrossEntropy<T, int64_t>>(request, true);
    if (labels.dtype == DType::kUInt8) return Make<CrossEntropy<T, uint8_t>>(request, true);
    return Unimplemented("no kernel for labels of dtype ", Name(labels.dtype));
  });
}

Prepared PrepareDense(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckCrossEntropy(request));
  const Operand &logits = request.inputs[0], &labels = request.inputs[1];
  RETURN_IF_ERROR(ExpectShape(labels, logits.shape));
  if (labels.dtype != logits.dtype) return InvalidArgument("logits and labels differ in dtype");
  return ForFloat(logits.dtype,
                  [&]<typename T>(Type<T>) { return Make<CrossEntropy<T, T>>(request, false); });
}

}  // namespace

KernelTable::Entries SoftmaxKernels() {
  return {{"Softmax", {PrepareSoftmax<false>, {{0, 0}}}},
          {"SoftmaxGrad", {PrepareSoftmaxGrad, {{0, 0}, {0, 1}}}},
          {"LogSoftmax", {PrepareSoftmax<true>, {{0, 0}}}},
          {"SparseSoftmaxCrossEntropyWithLogits", {PrepareSparse, {{1, 0}}}},
          {"SoftmaxCrossEntropyWithLogits", {PrepareDense, {{1, 0}, {1, 1}}}}};
}

}  // namespace tfjob::kernels::cpu
