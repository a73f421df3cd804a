#include <array>

#include "runtime/base/check.h"
#include "runtime/kernels/stream.h"
#include "runtime/optimizer/update.h"

namespace tfjob::optimizer {
namespace {

template <typename T>
void ApplySpans(const Optimizer& optimizer, int64_t step, std::span<T> variable,
                std::span<const T> gradient, std::span<const std::span<T>> slots,
                kernels::Stream& stream, T scale) {
  ENFORCE(gradient.size() == variable.size(), "one gradient element for each of the variable");
  ENFORCE(static_cast<int>(slots.size()) == SlotCount(optimizer), "the optimizer's slots");
  for (const std::span<T>& slot : slots) {
    ENFORCE(slot.size() == variable.size(), "a slot is as large as its variable");
  }
  const auto update = internal::MakeUpdate<T>(optimizer, step, scale);
  stream.ParallelFor(
      static_cast<int64_t>(variable.size()), internal::kGrain, [&](int64_t begin, int64_t end) {
        std::array<T*, kMaxSlots> at{};
        for (size_t i = 0; i < slots.size(); ++i) at[i] = slots[i].data() + begin;
        update(end - begin, variable.data() + begin, gradient.data() + begin, at.data());
      });
}

}  // namespace

void Apply(const Optimizer& optimizer, int64_t step, std::span<float> variable,
           std::span<const float> gradient, std::span<const std::span<float>> slots,
           kernels::Stream& stream, float gradient_scale) {
  ApplySpans(optimizer, step, variable, gradient, slots, stream, gradient_scale);
}

void Apply(const Optimizer& optimizer, int64_t step, std::span<double> variable,
           std::span<const double> gradient, std::span<const std::span<double>> slots,
           kernels::Stream& stream, double gradient_scale) {
  ApplySpans(optimizer, step, variable, gradient, slots, stream, gradient_scale);
}

}  // namespace tfjob::optimizer
