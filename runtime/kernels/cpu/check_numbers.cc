// Implements CheckNumerics, which rejects tensors that contain NaN or infinity.
#include <atomic>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

template <typename T>
class CheckNumerics : public Kernel {
 public:
  explicit CheckNumerics(const KernelRequest& request)
      : rows_({&request.outputs[0], &request.inputs[0]}),
        in_stride_(request.inputs[0].row_stride),
        out_stride_(request.outputs[0].row_stride),
        message_(request.attributes.Get("message", std::string())) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* in = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    std::atomic<bool> finite = true;
    rows_.ForEach(stream, [&](int64_t row, int64_t begin, int64_t end) {
      const T* const from = in + row * in_stride_ + begin;
      T* const to = out + row * out_stride_ + begin;
      bool all = true;
      for (int64_t i = 0; i < end - begin; ++i) {
        const T value = from[i];
        all &= std::abs(value) <= std::numeric_limits<T>::max();  // false if it is NaN
        to[i] = value;
      }
      if (!all) finite = false;
    });
    if (!finite) stream.Fail(NotFinite(message_));
  }

 private:
  const Rows rows_;
  const int64_t in_stride_, out_stride_;
  const std::string message_;
};

Prepared PrepareCheckNumerics(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  RETURN_IF_ERROR(ExpectAlike(request, 0, 1));
  return ForFloat(request.inputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<CheckNumerics<T>>(request); });
}

}  // namespace

KernelTable::Entries NumberKernels() {
  return {{"CheckNumerics", {PrepareCheckNumerics, {{0, 0}}}}};
}

}  // namespace tfjob::kernels::cpu
