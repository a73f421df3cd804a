// Provides the value of a variable, or of one of its slots, that is too large to be held: it is
// read piece by piece, from wherever it is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::state {

// A reader of a value should ask for pieces of this size: large enough for the network and the
// disk, and small compared with the memory of a task.
inline constexpr size_t kPieceBytes = size_t{1} << 20;

// Thread-safe. The value never changes.
class StreamedValue {
 public:
  virtual ~StreamedValue() = default;
  // Fills `to` with the bytes of the dense, row-major value from byte `offset` on. `offset` and the
  // size of `to` are multiples of the size of an element, and lie within the value. May be called
  // again for the same bytes. After an error, the content of `to` is undefined.
  virtual Status Read(int64_t offset, std::span<std::byte> to) const = 0;
};

// Returns a value whose elements, of float32 or float64, all equal `element`.
std::shared_ptr<const StreamedValue> StreamedConstant(DType dtype, double element);

}  // namespace tfjob::state
