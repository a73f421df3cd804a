#include <limits>
#include <type_traits>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/rows.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cpu {
namespace {

// Converts any value. In C++, converting a float to an integer type is undefined if the value is
// out of range. Here, such a value becomes the nearest integer in the range, and NaN becomes 0.
template <typename Out, typename In>
Out Convert(In value) {
  if constexpr (sizeof(In) == 2) {
    return Convert<Out>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<Out, bool>) {
    return value != 0;
  } else if constexpr (sizeof(Out) == 2) {
    return Out(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<In> && std::is_integral_v<Out>) {
    // The comparisons must include equality, because converting the limits to floating point may
    // round them away from zero.
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

// Like ForAny, but also supports the half types.
template <typename F>
Prepared ForEvery(DType dtype, F f) {
  if (dtype == DType::kBFloat16) return f(Type<BFloat16>());
  if (dtype == DType::kFloat16) return f(Type<Float16>());
  return ForAny(dtype, f);
}

template <typename In, typename Out>
void ConvertAll(int64_t count, const void* from, void* to) {
  const auto* in = static_cast<const In*>(from);
  auto* out = static_cast<Out*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = Convert<Out>(in[i]);
}

// Converts elements to another dtype. Only the loop over the elements is instantiated for each pair
// of dtypes; all other code computes addresses in bytes, and is therefore independent of the
// dtypes.
class Cast : public Kernel {
 public:
  using Loop = decltype(&ConvertAll<float, float>);

  Cast(const Operand& in, const Operand& out, Loop loop)
      : loop_(loop), rows_({&out, &in}), in_(in), out_(out) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    rows_.ForEach(stream, [&](int64_t row, int64_t begin, int64_t end) {
      loop_(end - begin, static_cast<const char*>(inputs[0]) + in_.Offset(row, begin),
            static_cast<char*>(outputs[0]) + out_.Offset(row, begin));
    });
  }

 private:
  struct Rowwise {
    explicit Rowwise(const Operand& operand)
        : stride(operand.row_stride), size(static_cast<int64_t>(SizeOf(operand.dtype))) {}
    int64_t Offset(int64_t row, int64_t column) const { return (row * stride + column) * size; }

    int64_t stride;  // in elements
    int64_t size;    // the size of an element, in bytes
  };

  const Loop loop_;
  const Rows rows_;
  const Rowwise in_, out_;
};

Prepared PrepareCast(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  RETURN_IF_ERROR(ExpectShape(in, out.shape));
  return ForEvery(in.dtype, [&]<typename In>(Type<In>) {
    return ForEvery(out.dtype, [&]<typename Out>(Type<Out>) {
      return Make<Cast>(in, out, &ConvertAll<In, Out>);
    });
  });
}

}  // namespace

KernelTable::Entries CastKernels() {
  return {{"Cast", {PrepareCast, {}}}};
}

}  // namespace tfjob::kernels::cpu
