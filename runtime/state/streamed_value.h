// Provides the value of a variable or slot that is too large for memory. The value is read piece by
// piece from its storage, or generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::state {

// The size of the pieces that a reader should request: large enough for the network and the disk,
// and small compared with a task's memory.
inline constexpr size_t kPieceBytes = size_t{1} << 20;

// Thread-safe. The value never changes.
class StreamedValue {
 public:
  virtual ~StreamedValue() = default;
  // Fills `to` with bytes of the dense, row-major value, starting at byte `offset`. `offset` and
  // the size of `to` must be multiples of the element size, and the range must lie within the
  // value. The same bytes may be read repeatedly. After an error, the content of `to` is undefined.
  virtual Status Read(int64_t offset, std::span<std::byte> to) const = 0;
  // Returns true if a read has failed permanently, so that the value can never be read again.
  virtual bool lost() const { return false; }
};

// Returns a value whose elements all equal `element`. Their type must be float32 or float64.
std::shared_ptr<const StreamedValue> StreamedConstant(DType dtype, double element);

}  // namespace tfjob::state
