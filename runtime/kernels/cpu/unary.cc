// Implements elementwise ops whose operands all have the output's shape.
#include <cmath>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr int64_t kFunctionWeight = 4;  // cost of an exponential relative to an addition

template <typename T, typename F>
class Unary : public Kernel {
 public:
  Unary(const KernelRequest& request, F f)
      : f_(f),
        rows_({&request.outputs[0], &request.inputs[0]}),
        in_stride_(request.inputs[0].row_stride),
        out_stride_(request.outputs[0].row_stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* in = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    rows_.ForEach(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          Map(end - begin, f_, out + row * out_stride_ + begin, in + row * in_stride_ + begin);
        },
        kFunctionWeight);
  }

 private:
  F f_;
  Rows rows_;
  int64_t in_stride_, out_stride_;
};

template <typename T, typename F>
class Binary : public Kernel {
 public:
  explicit Binary(const KernelRequest& request)
      : rows_({&request.outputs[0], &request.inputs[0], &request.inputs[1]}),
        a_stride_(request.inputs[0].row_stride),
        b_stride_(request.inputs[1].row_stride),
        out_stride_(request.outputs[0].row_stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* a = static_cast<const T*>(inputs[0]);
    const auto* b = static_cast<const T*>(inputs[1]);
    auto* out = static_cast<T*>(outputs[0]);
    rows_.ForEach(stream, [&](int64_t row, int64_t begin, int64_t end) {
      Map(end - begin, F(), out + row * out_stride_ + begin, a + row * a_stride_ + begin,
          b + row * b_stride_ + begin);
    });
  }

 private:
  Rows rows_;
  int64_t a_stride_, b_stride_, out_stride_;
};

Status CheckUnary(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  return ExpectAlike(request, 0, 1);
}

template <typename F>
Prepared PrepareUnary(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckUnary(request));
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<Unary<T, F>>(request, F()); });
}

template <typename F>
Prepared PrepareSigned(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckUnary(request));
  return ForNumber(request.outputs[0].dtype,
                   [&]<typename T>(Type<T>) { return Make<Unary<T, F>>(request, F()); });
}

template <typename T>
struct ClipTo {
  T low, high;
  T operator()(T x) const { return Clip()(x, low, high); }
};

Prepared PrepareClip(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckUnary(request));
  const double low = NumberOf(request.attributes, "clip_value_min", -INFINITY);
  const double high = NumberOf(request.attributes, "clip_value_max", INFINITY);
  if (!(low <= high))
    return InvalidArgument("clip_value_min ", low, " is above clip_value_max ", high);
  return ForFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) {
    const ClipTo<T> clip{static_cast<T>(low), static_cast<T>(high)};
    return Make<Unary<T, ClipTo<T>>>(request, clip);
  });
}

template <typename F>
Prepared PrepareGradient(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(ExpectAlike(request, 0, 2));
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<Binary<T, F>>(request); });
}

}  // namespace

KernelTable::Entries UnaryKernels() {
  const std::vector<InPlace> first = {{0, 0}}, either = {{0, 0}, {0, 1}};
  return {{"Relu", {PrepareUnary<Relu>, first}},
          {"Sigmoid", {PrepareUnary<SigmoidOf>, first}},
          {"Tanh", {PrepareUnary<TanhOf>, first}},
          {"Exp", {PrepareUnary<Exponential>, first}},
          {"Log", {PrepareUnary<Logarithm>, first}},
          {"Erf", {PrepareUnary<ErrorFunction>, first}},
          {"Sin", {PrepareUnary<Sine>, first}},
          {"Cos", {PrepareUnary<Cosine>, first}},
          {"Sqrt", {PrepareUnary<SquareRoot>, first}},
          {"Rsqrt", {PrepareUnary<Rsqrt>, first}},
          {"Neg", {PrepareSigned<Neg>, first}},
          {"Abs", {PrepareSigned<Abs>, first}},
          {"Square", {PrepareSigned<Square>, first}},
          {"ClipByValue", {PrepareClip, first}},
          {"ReluGrad", {PrepareGradient<ReluGrad>, either}},
          {"SigmoidGrad", {PrepareGradient<SigmoidGrad>, either}},
          {"TanhGrad", {PrepareGradient<TanhGrad>, either}}};
}

}  // namespace tfjob::kernels::cpu
