#include "runtime/io/stored_tensor.h"

#include <algorithm>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/io/data_file.h"

namespace tfjob::io {

namespace {

// Blocks of at least this size are read into their place. Smaller ones are read together, in pieces
// of this size, and copied.
constexpr int64_t kPieceBytes = 64 << 10;

// Returns the first position in the slice whose element is at or after `element` in the tensor.
int64_t FirstFrom(const SlicePositions& positions, int64_t element) {
  int64_t begin = 0, end = positions.size();
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (positions.InTensor(middle) < element) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// Reads the elements of a part that are in `to`, which are consecutive in the part.
class PartReader {
 public:
  // `to` are the bytes of the tensor from `offset` on. `item` is the size of an element.
  PartReader(const StoredTensor::Part& part, int64_t item, int64_t offset, std::span<std::byte> to)
      : part_(part), item_(item), offset_(offset), to_(to) {}

  Status Run() const {
    const int64_t size = static_cast<int64_t>(to_.size());
    int64_t position = FirstFrom(part_.positions, offset_ / item_);
    const int64_t end = FirstFrom(part_.positions, (offset_ + size + item_ - 1) / item_);
    std::vector<std::byte> buffer;
    while (position < end) {
      const int64_t block = BlockFrom(position, end);
      if (block == end - position || block * item_ >= kPieceBytes) {
        const Place place = PlaceOf(position, block);
        RETURN_IF_ERROR(
            part_.file->Read(part_.offset + position * item_ + place.skipped, place.bytes));
        position += block;
        continue;
      }
      const int64_t count = std::min(kPieceBytes / item_, end - position);
      buffer.resize(static_cast<size_t>(count * item_));
      RETURN_IF_ERROR(part_.file->Read(part_.offset + position * item_, buffer));
      Scatter(position, count, buffer);
      position += count;
    }
    return OkStatus();
  }

 private:
  // The bytes of a block that are in `to`, after the first `skipped` bytes of the block.
  struct Place {
    std::span<std::byte> bytes;
    int64_t skipped = 0;
  };
  Place PlaceOf(int64_t position, int64_t count) const {
    const int64_t at = part_.positions.InTensor(position) * item_;
    const int64_t begin = std::max(at, offset_);
    const int64_t end = std::min(at + count * item_, offset_ + static_cast<int64_t>(to_.size()));
    return {to_.subspan(static_cast<size_t>(begin - offset_), static_cast<size_t>(end - begin)),
            begin - at};
  }

  // Returns how many elements from the position on, and before `end`, are contiguous in the tensor.
  int64_t BlockFrom(int64_t position, int64_t end) const {
    const int64_t block = part_.positions.block();
    return std::min(block - position % block, end - position);
  }

  // Copies the elements in `piece` to their places.
  void Scatter(int64_t position, int64_t count, std::span<const std::byte> piece) const {
    for (int64_t at = position; at < position + count;) {
      const int64_t block = BlockFrom(at, position + count);
      const Place place = PlaceOf(at, block);
      const size_t from = static_cast<size_t>((at - position) * item_ + place.skipped);
      std::ranges::copy(piece.subspan(from, place.bytes.size()), place.bytes.begin());
      at += block;
    }
  }

  const StoredTensor::Part& part_;
  const int64_t item_, offset_;
  const std::span<std::byte> to_;
};

}  // namespace

Status StoredTensor::Read(int64_t offset, std::span<std::byte> to) const {
  const auto item = static_cast<int64_t>(SizeOf(dtype_));
  const int64_t bytes = shape_.num_elements() * item;
  if (offset < 0 || offset > bytes || to.size() > static_cast<size_t>(bytes - offset)) {
    return InvalidArgument("expected bytes of a tensor of ", bytes, " bytes, got ", to.size(),
                           " from byte ", offset);
  }
  if (to.empty()) return OkStatus();
  for (const Part& part : *parts_) RETURN_IF_ERROR(PartReader(part, item, offset, to).Run());
  return OkStatus();
}

Status StoredTensor::ReadRows(std::span<const int64_t> indices, std::span<std::byte> rows) const {
  if (shape_.rank() != 2) return InvalidArgument("expected a matrix, got ", shape_.ToString());
  const size_t row = static_cast<size_t>(shape_.dim(1)) * SizeOf(dtype_);
  ENFORCE(rows.size() == indices.size() * row, "as many rows as indices");
  for (size_t i = 0; i < indices.size() && indices[i] >= 0; ++i) {
    if (indices[i] >= shape_.dim(0)) {
      return InvalidArgument("row ", indices[i], ": expected 0 to ", shape_.dim(0) - 1);
    }
    const int64_t offset = indices[i] * static_cast<int64_t>(row);
    RETURN_IF_ERROR(Read(offset, rows.subspan(i * row, row)));
  }
  return OkStatus();
}

}  // namespace tfjob::io
