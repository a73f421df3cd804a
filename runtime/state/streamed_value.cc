#include "runtime/state/streamed_value.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace tfjob::state {
namespace {

template <typename T>
void FillWith(double element, std::span<std::byte> to) {
  std::fill_n(reinterpret_cast<T*>(to.data()), to.size() / sizeof(T), static_cast<T>(element));
}

class Constant : public StreamedValue {
 public:
  Constant(DType dtype, double element) : dtype_(dtype), element_(element) {}

  Status Read(int64_t, std::span<std::byte> to) const override {
    if (dtype_ == DType::kFloat64) {
      FillWith<double>(element_, to);
    } else {
      FillWith<float>(element_, to);
    }
    return OkStatus();
  }

 private:
  const DType dtype_;
  const double element_;
};

}  // namespace

std::shared_ptr<const StreamedValue> StreamedConstant(DType dtype, double element) {
  ENFORCE(dtype == DType::kFloat32 || dtype == DType::kFloat64, "only these have constants");
  return std::make_shared<Constant>(dtype, element);
}

}  // namespace tfjob::state
