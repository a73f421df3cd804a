#include <limits>
#include <type_traits>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

// Converts any value. C++ does not define the conversion of a float outside an integer's range.
template <typename Out, typename In>
Out Convert(In value) {
  if constexpr (std::is_same_v<Out, bool>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<In> && std::is_integral_v<Out>) {
    // The limits round away from zero when converted to floating point, so the comparisons must
    // include equality.
    if (value >= static_cast<In>(std::numeric_limits<Out>::max())) {
      return std::numeric_limits<Out>::max();
    }
    if (value <= static_cast<In>(std::numeric_limits<Out>::lowest())) {
      return std::numeric_limits<Out>::lowest();
    }
    return value == value ? static_cast<Out>(value) : Out{0};
  } else {
    return static_cast<Out>(value);
  }
}

template <typename In, typename Out>
class Cast : public Kernel {
 public:
  Cast(const Operand& in, const Operand& out)
      : rows_({&out, &in}), in_stride_(in.row_stride), out_stride_(out.row_stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* in = static_cast<const In*>(inputs[0]);
    auto* out = static_cast<Out*>(outputs[0]);
    rows_.ForEach(stream, [&](int64_t row, int64_t begin, int64_t end) {
      const In* from = in + row * in_stride_;
      Out* to = out + row * out_stride_;
      for (int64_t i = begin; i < end; ++i) to[i] = Convert<Out>(from[i]);
    });
  }

 private:
  Rows rows_;
  int64_t in_stride_, out_stride_;
};

Prepared PrepareCast(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  RETURN_IF_ERROR(ExpectShape(in, out.shape));
  return ForAny(in.dtype, [&]<typename In>(Type<In>) {
    return ForAny(out.dtype, [&]<typename Out>(Type<Out>) { return Make<Cast<In, Out>>(in, out); });
  });
}

}  // namespace

KernelTable::Entries CastKernels() {
  return {{"Cast", {PrepareCast, {}}}};
}

}  // namespace tfjob::kernels::cpu
