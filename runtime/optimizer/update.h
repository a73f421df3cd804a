// Updates ranges of a variable. Apply (optimizer.h) creates an Update and calls it for each range.
// Callers whose elements are not contiguous use Update directly (apply_kernel.cc).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/optimizer/optimizer.h"
#include "runtime/optimizer/part.h"

namespace tfjob::optimizer::internal {

// The minimum number of elements that justifies waking another thread.
inline constexpr int64_t kGrain = 16384;

// Contains the scalar inputs of the loops. MakeUpdate computes them in double precision from the
// hyper-parameters and the step.
template <typename T>
struct Coefficients {
  T rate = 0;           // includes the bias correction of Adam or Adamax
  T gradient_rate = 0;  // Nadam: factor of the gradient; `rate` is the factor of the first moment
  T correction = 0;     // Nadam: 1 / (1 - beta_2^t)
  T momentum = 0;
  T keep_1 = 0, take_1 = 0;  // rho and 1 - rho, or beta_1 and 1 - beta_1
  T keep_2 = 0, take_2 = 0;  // beta_2 and 1 - beta_2
  T epsilon = 0;
  T scale = 1;                   // factor of the gradient
  T l1 = 0, l2 = 0, shrink = 0;  // Ftrl; l2 and shrink are factors of w
  T power = 0;                   // Ftrl: -learning_rate_power
};

// Updates ranges of a variable.
template <typename T>
struct Update {
  // Computes an update of the optimizer's kind, without the options that all kinds have. `gradient`
  // must not overlap the variable or the slots.
  using Loop = void (*)(const Coefficients<T>&, int64_t count, T* variable, const T* gradient,
                        T* const* slots);
  Loop loop = nullptr;
  Coefficients<T> coefficients;
  T decay = 0;  // weight decay: w -= decay w

  int average = -1;  // index of the slot; -1 if there is none
  T keep_average = 0;
  bool overwrite = false;  // w = average

  int accumulator = -1;    // index of the slot; -1 if there is none
  T arriving = 1;          // factor of a gradient that is added to the accumulator
  bool adds = true;        // if false, `gradient` already is the accumulated mean
  bool only_adds = false;  // whether this step only adds to the accumulator

  // Updates a range of the variable. `slots` point to the same range of the slots, in the order of
  // optimizer::Slots.
  void operator()(int64_t count, T* variable, const T* gradient, T* const* slots) const;
};

template <typename T>
Update<T> MakeUpdate(const Optimizer& optimizer, int64_t step, T gradient_scale,
                     Part part = Part::kWhole);

// Refers to a matrix, its slots, and the rows of its gradient that may be nonzero. Strides are in
// elements.
template <typename T>
struct RowsToUpdate {
  int64_t rows = 0, cols = 0;
  T* variable = nullptr;
  int64_t stride = 0;
  std::array<T*, kMaxSlots> slots{};
  std::array<int64_t, kMaxSlots> slot_strides{};
  std::span<const int64_t> indices;  // ascending, distinct
  int64_t first_index = 0;           // the index of the variable's first row
  const T* values = nullptr;
  int64_t value_stride = 0;
};

// Updates the rows that have a gradient. Also updates all other rows, unless KeepsRows(optimizer)
// is true.
template <typename T>
void UpdateRows(const Optimizer& optimizer, const Update<T>& update, const RowsToUpdate<T>& rows,
                kernels::Stream& stream);

}  // namespace tfjob::optimizer::internal
