// Implements ops that broadcast their operands according to NumPy's rules.
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/cpu/strided.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

StatusOr<StridedLoop> BroadcastLoop(const KernelRequest& request) {
  const Operand& output = request.outputs[0];
  std::vector<Strides> strides = {StridesOf(output)};
  for (const Operand& input : request.inputs) {
    ASSIGN_OR_RETURN(Strides own, BroadcastStrides(input, output.shape));
    strides.push_back(own);
  }
  return StridedLoop::Create(output.shape, strides);
}

// Divides the loop among the threads, and calls body(first, last, begin, end) for each part. A part
// consists of the inner iterations [begin, end) of each outer iteration in [first, last). The
// innermost loop is divided only if there is no other loop.
template <typename Body>
void ForRanges(const StridedLoop& loop, Stream& stream, const Body& body) {
  if (loop.outer() == 1) {
    stream.ParallelFor(loop.inner(), kGrain, [&](int64_t begin, int64_t end) {
      body(int64_t{0}, int64_t{1}, begin, end);
    });
    return;
  }
  const int64_t grain = 1 + kGrain / std::max<int64_t>(1, loop.inner());
  stream.ParallelFor(loop.outer(), grain, [&](int64_t begin, int64_t end) {
    body(begin, end, int64_t{0}, loop.inner());
  });
}

// Runs the innermost loop. For each common combination of strides, there is a copy of the loop with
// constant strides, which gcc can vectorise.
template <typename T, typename Out, typename F>
void MapTwo(const StridedLoop& loop, int64_t count, void* to, const void* left, const void* right) {
  const F f;
  auto* out = static_cast<Out*>(to);
  const auto* a = static_cast<const T*>(left);
  const auto* b = static_cast<const T*>(right);
  const int64_t out_step = loop.inner_stride(0), a_step = loop.inner_stride(1);
  const int64_t b_step = loop.inner_stride(2);
  if (out_step == 1 && a_step == 1 && b_step == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
  } else if (out_step == 1 && a_step == 1 && b_step == 0) {
    const T value = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], value);
  } else if (out_step == 1 && a_step == 0 && b_step == 1) {
    const T value = *a;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = f(value, b[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i * out_step] = f(a[i * a_step], b[i * b_step]);
  }
}

// Broadcasts operands. Only the innermost loop is instantiated for each function and dtype; all
// other code computes addresses in bytes, and is therefore independent of the function and the
// dtype.
class Broadcast : public Kernel {
 public:
  using InnerLoop = decltype(&MapTwo<float, float, Add>);

  Broadcast(const StridedLoop& loop, InnerLoop inner_loop, size_t in_size, size_t out_size)
      : loop_(loop),
        inner_loop_(inner_loop),
        in_size_(static_cast<int64_t>(in_size)),
        out_size_(static_cast<int64_t>(out_size)) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    ForRanges(loop_, stream, [&](int64_t first, int64_t last, int64_t begin, int64_t end) {
      auto* out = static_cast<char*>(outputs[0]) + begin * loop_.inner_stride(0) * out_size_;
      const auto* a =
          static_cast<const char*>(inputs[0]) + begin * loop_.inner_stride(1) * in_size_;
      const auto* b =
          static_cast<const char*>(inputs[1]) + begin * loop_.inner_stride(2) * in_size_;
      loop_.ForEachInner(first, last, [&](const auto& at) {
        inner_loop_(loop_, end - begin, out + at[0] * out_size_, a + at[1] * in_size_,
                    b + at[2] * in_size_);
      });
    });
  }

 private:
  const StridedLoop loop_;
  const InnerLoop inner_loop_;
  const int64_t in_size_;
  const int64_t out_size_;
};

template <typename T, typename Out, typename F>
std::unique_ptr<Kernel> MakeBroadcast(const StridedLoop& loop) {
  return std::make_unique<Broadcast>(loop, &MapTwo<T, Out, F>, sizeof(T), sizeof(Out));
}

template <typename T>
class SelectKernel : public Kernel {
 public:
  explicit SelectKernel(const StridedLoop& loop) : loop_(loop) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* condition = static_cast<const bool*>(inputs[0]);
    const auto* a = static_cast<const T*>(inputs[1]);
    const auto* b = static_cast<const T*>(inputs[2]);
    auto* out = static_cast<T*>(outputs[0]);
    const int64_t out_step = loop_.inner_stride(0), condition_step = loop_.inner_stride(1);
    const int64_t a_step = loop_.inner_stride(2), b_step = loop_.inner_stride(3);
    ForRanges(loop_, stream, [&](int64_t first, int64_t last, int64_t begin, int64_t end) {
      loop_.ForEachInner(first, last, [&](const auto& at) {
        for (int64_t i = begin; i < end; ++i) {
          const bool chosen = condition[at[1] + i * condition_step];
          out[at[0] + i * out_step] = chosen ? a[at[2] + i * a_step] : b[at[3] + i * b_step];
        }
      });
    });
  }

 private:
  StridedLoop loop_;
};

template <typename T>
class BroadcastToKernel : public Kernel {
 public:
  explicit BroadcastToKernel(const StridedLoop& loop) : loop_(loop) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* in = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    const int64_t out_step = loop_.inner_stride(0), in_step = loop_.inner_stride(1);
    ForRanges(loop_, stream, [&](int64_t first, int64_t last, int64_t begin, int64_t end) {
      loop_.ForEachInner(first, last, [&](const auto& at) {
        if (out_step == 1 && in_step == 0) {
          std::fill(out + at[0] + begin, out + at[0] + end, in[at[1]]);
          return;
        }
        for (int64_t i = begin; i < end; ++i) out[at[0] + i * out_step] = in[at[1] + i * in_step];
      });
    });
  }

 private:
  StridedLoop loop_;
};

Status CheckTwo(const KernelRequest& request, DType output) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  const DType dtype = request.inputs[0].dtype;
  if (request.inputs[1].dtype != dtype) return InvalidArgument("the operands differ in dtype");
  if (request.outputs[0].dtype != output) {
    return InvalidArgument("the output must be ", Name(output));
  }
  return OkStatus();
}

template <typename F>
Prepared PrepareArithmetic(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(CheckTwo(request, request.inputs[0].dtype));
  ASSIGN_OR_RETURN(StridedLoop loop, BroadcastLoop(request));
  return ForNumber(request.inputs[0].dtype,
                   [&]<typename T>(Type<T>) { return MakeBroadcast<T, T, F>(loop); });
}

Prepared PreparePow(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(CheckTwo(request, request.inputs[0].dtype));
  ASSIGN_OR_RETURN(StridedLoop loop, BroadcastLoop(request));
  return ForFloat(request.inputs[0].dtype,
                  [&]<typename T>(Type<T>) { return MakeBroadcast<T, T, Pow>(loop); });
}

template <typename F>
Prepared PrepareComparison(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckTwo(request, DType::kBool));
  ASSIGN_OR_RETURN(StridedLoop loop, BroadcastLoop(request));
  return ForAny(request.inputs[0].dtype,
                [&]<typename T>(Type<T>) { return MakeBroadcast<T, bool, F>(loop); });
}

Prepared PrepareSelect(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 3, 1));
  const DType dtype = request.outputs[0].dtype;
  if (request.inputs[0].dtype != DType::kBool) return InvalidArgument("the condition must be bool");
  if (request.inputs[1].dtype != dtype || request.inputs[2].dtype != dtype) {
    return InvalidArgument("both values must have the output's dtype ", Name(dtype));
  }
  ASSIGN_OR_RETURN(StridedLoop loop, BroadcastLoop(request));
  return ForSize(dtype, [&]<typename T>(Type<T>) { return Make<SelectKernel<T>>(loop); });
}

Prepared PrepareBroadcastTo(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const DType dtype = request.outputs[0].dtype;
  if (request.inputs[0].dtype != dtype) return InvalidArgument("input and output differ in dtype");
  ASSIGN_OR_RETURN(StridedLoop loop, BroadcastLoop(request));
  return ForSize(dtype, [&]<typename T>(Type<T>) { return Make<BroadcastToKernel<T>>(loop); });
}

}  // namespace

KernelTable::Entries BroadcastKernels() {
  const std::vector<InPlace> either = {{0, 0}, {0, 1}};
  return {{"Add", {PrepareArithmetic<Add>, either}},
          {"Sub", {PrepareArithmetic<Sub>, either}},
          {"Mul", {PrepareArithmetic<Mul>, either}},
          {"Div", {PrepareArithmetic<Div>, either}},
          {"Maximum", {PrepareArithmetic<Maximum>, either}},
          {"Minimum", {PrepareArithmetic<Minimum>, either}},
          {"Pow", {PreparePow, either}},
          {"Equal", {PrepareComparison<Equal>, {}}},
          {"Greater", {PrepareComparison<Greater>, {}}},
          {"GreaterEqual", {PrepareComparison<GreaterEqual>, {}}},
          {"Less", {PrepareComparison<Less>, {}}},
          {"Select", {PrepareSelect, {}}},
          {"BroadcastTo", {PrepareBroadcastTo, {}}}};
}

}  // namespace tfjob::kernels::cpu
