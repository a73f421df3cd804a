// Applies gradients in which only some rows are nonzero.
#include <algorithm>
#include <array>

#include "runtime/base/check.h"
#include "runtime/kernels/stream.h"
#include "runtime/optimizer/update.h"

namespace tfjob::optimizer {
namespace internal {
namespace {

// The size of a piece of a row, in elements. Rows without a gradient are updated with a gradient of
// zeros, piece by piece.
constexpr int64_t kZeros = 1024;
template <typename T>
constexpr std::array<T, kZeros> kZero{};

// Updates elements [begin, end) of row `row`. `gradient` points to the gradient of these elements.
template <typename T>
void UpdateRow(const Update<T>& update, const RowsToUpdate<T>& r, int64_t row, int64_t begin,
               int64_t end, const T* gradient) {
  std::array<T*, kMaxSlots> slots{};
  for (size_t i = 0; i < slots.size() && r.slots[i] != nullptr; ++i)
    slots[i] = r.slots[i] + row * r.slot_strides[i] + begin;
  update(end - begin, r.variable + row * r.stride + begin, gradient, slots.data());
}

template <typename T>
void UpdateWithoutGradient(const Update<T>& update, const RowsToUpdate<T>& r, int64_t row) {
  for (int64_t begin = 0; begin < r.cols; begin += kZeros) {
    UpdateRow(update, r, row, begin, std::min(r.cols, begin + kZeros), kZero<T>.data());
  }
}

// Updates rows [begin, end) of the variable, with or without a gradient.
template <typename T>
void UpdateAll(const Update<T>& update, const RowsToUpdate<T>& r, int64_t begin, int64_t end) {
  auto next = std::ranges::lower_bound(r.indices, r.first_index + begin) - r.indices.begin();
  const auto count = static_cast<int64_t>(r.indices.size());
  for (int64_t row = begin; row < end; ++row) {
    if (next < count && r.indices[static_cast<size_t>(next)] == r.first_index + row) {
      UpdateRow(update, r, row, 0, r.cols, r.values + next++ * r.value_stride);
    } else {
      UpdateWithoutGradient(update, r, row);
    }
  }
}

}  // namespace

template <typename T>
void UpdateRows(const Optimizer& optimizer, const Update<T>& update, const RowsToUpdate<T>& r,
                kernels::Stream& stream) {
  const int64_t grain = 1 + kGrain / std::max<int64_t>(1, r.cols);
  if (!KeepsRows(optimizer)) {
    stream.ParallelFor(r.rows, grain,
                       [&](int64_t begin, int64_t end) { UpdateAll(update, r, begin, end); });
    return;
  }
  stream.ParallelFor(static_cast<int64_t>(r.indices.size()), grain,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         UpdateRow(update, r, r.indices[static_cast<size_t>(i)] - r.first_index, 0,
                                   r.cols, r.values + i * r.value_stride);
                       }
                     });
}

template void UpdateRows(const Optimizer&, const Update<float>&, const RowsToUpdate<float>&,
                         kernels::Stream&);
template void UpdateRows(const Optimizer&, const Update<double>&, const RowsToUpdate<double>&,
                         kernels::Stream&);

}  // namespace internal

namespace {

template <typename T>
void ApplyRowsOf(const Optimizer& optimizer, int64_t step, std::span<T> variable,
                 const GradientRows<T>& gradient, std::span<const std::span<T>> slots,
                 kernels::Stream& stream, T scale) {
  const int64_t cols = gradient.cols;
  if (cols == 0) return;
  const auto rows = static_cast<int64_t>(variable.size()) / cols;
  ENFORCE(rows * cols == static_cast<int64_t>(variable.size()), "a variable of whole rows");
  ENFORCE(gradient.values.size() == gradient.indices.size() * static_cast<size_t>(cols),
          "one row of values per index");
  ENFORCE(gradient.indices.empty() || (gradient.indices.front() >= gradient.first_index &&
                                       gradient.indices.back() - gradient.first_index < rows),
          "indices of the variable's rows");
  ENFORCE(static_cast<int>(slots.size()) == SlotCount(optimizer), "the optimizer's slots");
  internal::RowsToUpdate<T> r{.rows = rows,
                              .cols = cols,
                              .variable = variable.data(),
                              .stride = cols,
                              .indices = gradient.indices,
                              .first_index = gradient.first_index,
                              .values = gradient.values.data(),
                              .value_stride = cols};
  for (size_t i = 0; i < slots.size(); ++i) {
    ENFORCE(slots[i].size() == variable.size(), "a slot is as large as its variable");
    r.slots[i] = slots[i].data();
    r.slot_strides[i] = cols;
  }
  internal::UpdateRows(optimizer, internal::MakeUpdate<T>(optimizer, step, scale), r, stream);
}

}  // namespace

void ApplyRows(const Optimizer& optimizer, int64_t step, std::span<float> variable,
               const GradientRows<float>& gradient, std::span<const std::span<float>> slots,
               kernels::Stream& stream, float gradient_scale) {
  ApplyRowsOf(optimizer, step, variable, gradient, slots, stream, gradient_scale);
}

void ApplyRows(const Optimizer& optimizer, int64_t step, std::span<double> variable,
               const GradientRows<double>& gradient, std::span<const std::span<double>> slots,
               kernels::Stream& stream, double gradient_scale) {
  ApplyRowsOf(optimizer, step, variable, gradient, slots, stream, gradient_scale);
}

}  // namespace tfjob::optimizer
