// Generates the initial values of variables piece by piece, for values that do not fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/philox.h"
#include "runtime/model/layer/initializer.h"

namespace tfjob::model {

// Generates pieces of the value that InitialValue would return. Thread-safe.
class InitialPieces {
 public:
  // Returns whether the value can be generated in pieces. This is not possible for Orthogonal,
  // where each element depends on the whole matrix.
  static bool CanMake(const Initializer& initializer);
  // Requires that CanMake returns true, and that the requirements of InitialValue are met.
  InitialPieces(const Initializer& initializer, DType dtype, const Shape& shape, uint64_t seed,
                std::string_view variable);

  // Fills `to` with the bytes of the value, starting at byte `offset`. `offset` and the size of
  // `to` must be multiples of the element size.
  void Read(int64_t offset, std::span<std::byte> to) const;

 private:
  template <typename T>
  void Generate(int64_t first, std::span<T> to) const;
  // Returns the random number generator, positioned at element `first`.
  PhiloxStream RandomAt(int64_t first) const;
  // Saves the generator's state before element `next`, so that a later read that starts at this
  // element need not draw all preceding numbers again.
  void Remember(int64_t next, const PhiloxStream& random) const;

  const Initializer initializer_;  // never of kind kVarianceScaling
  const std::pair<int64_t, int64_t> ones_;
  const DType dtype_;
  const int64_t columns_;
  // The known states of the generator, one before every kEvery-th element. Elements may consume
  // different amounts of random numbers, so the state before an element is known only after the
  // numbers of all preceding elements have been drawn.
  static constexpr int64_t kEvery = int64_t{1} << 16;
  mutable Mutex mutex_;
  mutable std::vector<PhiloxStream> states_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::model
