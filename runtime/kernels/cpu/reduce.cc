// Implements Sum, Mean, Max and Min over any axes, and ArgMax.
#include <limits>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/lanes.h"
#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cpu/rows.h"
#include "runtime/kernels/cpu/strided.h"

namespace tfjob::kernels::cpu {
namespace {

template <typename T>
constexpr T Lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <typename T>
constexpr T Highest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}

struct SumOf : Add {
  template <typename T>
  static constexpr T kStart = 0;
};
struct MaxOf : Maximum {
  template <typename T>
  static constexpr T kStart = Lowest<T>();
};
struct MinOf : Minimum {
  template <typename T>
  static constexpr T kStart = Highest<T>();
};

// Reduces a vector. Works in blocks, so that the error of a long sum grows with the logarithm of
// its length instead of the length.
template <typename T, typename F>
T ReduceContiguous(int64_t count, const T* x) {
  constexpr int64_t kBlock = 1024;
  if (count <= kBlock) return ReduceLanes(count, x, F::template kStart<T>, F(), Copy());
  const int64_t half = (count / 2 + kBlock - 1) / kBlock * kBlock;
  return F()(ReduceContiguous<T, F>(half, x), ReduceContiguous<T, F>(count - half, x + half));
}

// Reduces an input. Operand 0 of `loop` is the output, with stride 0 along reduced dimensions, and
// operand 1 is the input.
template <typename T, typename F>
class Reduce : public Kernel {
 public:
  Reduce(const StridedLoop& loop, const Operand& output, double divisor)
      : loop_(loop), output_(output), divisor_(divisor) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream&) override {
    const auto* in = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    ForOutputRows(out, [](T*, int64_t) { return F::template kStart<T>; });
    const int64_t in_step = loop_.inner_stride(1), out_step = loop_.inner_stride(0);
    const int64_t count = loop_.inner();
    loop_.ForEachInner(0, count == 0 ? 0 : loop_.outer(), [&](const auto& at) {
      T* to = out + at[0];
      const T* from = in + at[1];
      if (out_step == 0 && in_step == 1) {
        *to = F()(*to, ReduceContiguous<T, F>(count, from));
      } else if (out_step == 1 && in_step == 1) {
        Map(count, F(), to, to, from);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          to[i * out_step] = F()(to[i * out_step], from[i * in_step]);
        }
      }
    });
    if (divisor_ != 1) {
      ForOutputRows(out, [this](T* row, int64_t i) {
        return static_cast<T>(static_cast<double>(row[i]) / divisor_);
      });
    }
  }

 private:
  template <typename Value>
  void ForOutputRows(T* out, const Value& value) const {
    for (int64_t row = 0; row < output_.rows(); ++row, out += output_.row_stride) {
      for (int64_t i = 0; i < output_.cols(); ++i) out[i] = value(out, i);
    }
  }

  StridedLoop loop_;
  Operand output_;
  double divisor_;
};

struct Reduction {
  StridedLoop loop;
  int64_t reduced = 1;  // input elements per output element
};

StatusOr<Reduction> ReductionOf(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &input = request.inputs[0], &output = request.outputs[0];
  if (input.dtype != output.dtype) return InvalidArgument("input and output differ in dtype");
  ASSIGN_OR_RETURN(std::vector<int> axes, AxesOf(request.attributes, input.shape.rank()));
  const bool keep = request.attributes.Get("keep_dims", false);
  RETURN_IF_ERROR(ExpectShape(output, ShapeWithout(input.shape, axes, keep)));
  const Strides own = StridesOf(output);
  Strides strides{};
  Reduction reduction;
  for (int d = 0, next = 0; d < input.shape.rank() && d < kMaxRank; ++d) {
    if (std::ranges::binary_search(axes, d)) {
      reduction.reduced *= input.shape.dim(d);
      next += keep ? 1 : 0;
      continue;
    }
    strides[d] = own[next++];
  }
  const Strides operands[] = {strides, StridesOf(input)};
  ASSIGN_OR_RETURN(reduction.loop, StridedLoop::Create(input.shape, operands));
  return reduction;
}

template <typename F>
Prepared PrepareReduce(const KernelRequest& request) {
  ASSIGN_OR_RETURN(Reduction reduction, ReductionOf(request));
  const Operand& output = request.outputs[0];
  return ForNumber(output.dtype, [&]<typename T>(Type<T>) {
    return Make<Reduce<T, F>>(reduction.loop, output, 1.0);
  });
}

Prepared PrepareMean(const KernelRequest& request) {
  ASSIGN_OR_RETURN(Reduction reduction, ReductionOf(request));
  const Operand& output = request.outputs[0];
  return ForFloat(output.dtype, [&]<typename T>(Type<T>) {
    return Make<Reduce<T, SumOf>>(reduction.loop, output, static_cast<double>(reduction.reduced));
  });
}

template <typename T>
class ArgMax : public Kernel {
 public:
  // Creates the kernel. Operand 0 of `loop` is the output, and operand 1 is the input without the
  // reduced axis. The reduced axis has `count` elements, which are `stride` elements apart.
  ArgMax(const StridedLoop& loop, int64_t count, int64_t stride)
      : loop_(loop), count_(count), stride_(stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* in = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<int64_t*>(outputs[0]);
    const int64_t grain = 1 + kGrain / std::max<int64_t>(1, count_ * loop_.inner());
    stream.ParallelFor(loop_.outer(), grain, [&](int64_t begin, int64_t end) {
      loop_.ForEachInner(begin, end, [&](const auto& at) {
        for (int64_t i = 0; i < loop_.inner(); ++i) {
          out[at[0] + i * loop_.inner_stride(0)] = Largest(in + at[1] + i * loop_.inner_stride(1));
        }
      });
    });
  }

 private:
  int64_t Largest(const T* x) const {
    int64_t best = 0;
    for (int64_t i = 1; i < count_; ++i) best = x[i * stride_] > x[best * stride_] ? i : best;
    return best;
  }

  StridedLoop loop_;
  int64_t count_, stride_;
};

Prepared PrepareArgMax(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const ArgMaxForm form, ArgMaxFormOf(request));
  return ForFloat(request.inputs[0].dtype, [&]<typename T>(Type<T>) {
    return Make<ArgMax<T>>(form.loop, form.count, form.step);
  });
}

}  // namespace

KernelTable::Entries ReduceKernels() {
  return {{"Sum", {PrepareReduce<SumOf>, {}}},
          {"Mean", {PrepareMean, {}}},
          {"Max", {PrepareReduce<MaxOf>, {}}},
          {"Min", {PrepareReduce<MinOf>, {}}},
          {"ArgMax", {PrepareArgMax, {}}}};
}

}  // namespace tfjob::kernels::cpu
