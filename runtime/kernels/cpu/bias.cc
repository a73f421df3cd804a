#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

template <typename T>
class BiasAdd : public Kernel {
 public:
  explicit BiasAdd(const KernelRequest& request)
      : in_(request.inputs[0]), out_stride_(request.outputs[0].row_stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* x = static_cast<const T*>(inputs[0]);
    const auto* bias = static_cast<const T*>(inputs[1]);
    auto* y = static_cast<T*>(outputs[0]);
    const int64_t cols = in_.cols();
    const int64_t grain = 1 + kGrain / std::max<int64_t>(1, cols);
    stream.ParallelFor(in_.rows(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        Map(cols, Add(), y + row * out_stride_, x + row * in_.row_stride, bias);
      }
    });
  }

 private:
  Operand in_;
  int64_t out_stride_;
};

template <typename T>
class BiasAddGrad : public Kernel {
 public:
  explicit BiasAddGrad(const KernelRequest& request)
      : rows_(request.inputs[0].rows()),
        cols_(request.inputs[0].cols()),
        stride_(request.inputs[0].row_stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* dy = static_cast<const T*>(inputs[0]);
    auto* sum = static_cast<T*>(outputs[0]);
    const int64_t grain = 64 + kGrain / std::max<int64_t>(1, rows_);
    stream.ParallelFor(cols_, grain, [&](int64_t begin, int64_t end) {
      std::fill(sum + begin, sum + end, T{0});
      // Process four rows at a time, to read and write the sums only once per four rows.
      int64_t row = 0;
      for (; row + 4 <= rows_; row += 4) AddFour(dy + row * stride_, sum, begin, end);
      for (; row < rows_; ++row) {
        Map(end - begin, Add(), sum + begin, sum + begin, dy + row * stride_ + begin);
      }
    });
  }

 private:
  void AddFour(const T* __restrict dy, T* __restrict sum, int64_t begin, int64_t end) const {
    const T *dy1 = dy + stride_, *dy2 = dy1 + stride_, *dy3 = dy2 + stride_;
    for (int64_t i = begin; i < end; ++i) sum[i] += (dy[i] + dy1[i]) + (dy2[i] + dy3[i]);
  }

  int64_t rows_, cols_, stride_;
};

Prepared PrepareBiasAdd(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(ExpectAlike(request, 0, 1));
  RETURN_IF_ERROR(ExpectShape(request.inputs[1], Shape({request.outputs[0].cols()})));
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<BiasAdd<T>>(request); });
}

Prepared PrepareBiasAddGrad(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  RETURN_IF_ERROR(ExpectShape(request.outputs[0], Shape({request.inputs[0].cols()})));
  if (request.inputs[0].dtype != request.outputs[0].dtype) {
    return InvalidArgument("input and output differ in dtype");
  }
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<BiasAddGrad<T>>(request); });
}

}  // namespace

KernelTable::Entries BiasKernels() {
  return {{"BiasAdd", {PrepareBiasAdd, {{0, 0}}}}, {"BiasAddGrad", {PrepareBiasAddGrad, {}}}};
}

}  // namespace tfjob::kernels::cpu
