#include "runtime/io/tensor_slice.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tfjob::io {
namespace {

// The functions below write TensorFlow's order-preserving encoding (tensorflow/core/lib/strings,
// ordered_code).

// Writes the number of bytes and the bytes of a number, most significant byte first.
void WriteNumber(uint64_t value, std::string& to) {
  std::string bytes;
  for (; value > 0; value >>= 8) bytes.insert(bytes.begin(), static_cast<char>(value & 0xFF));
  to += static_cast<char>(bytes.size());
  to += bytes;
}

// Writes a text, with 0x00 as 00 FF and 0xFF as FF 00, followed by the terminator 00 01.
void WriteText(std::string_view text, std::string& to) {
  for (const char c : text) {
    to += c;
    if (c == '\0') to += '\xFF';
    if (c == '\xFF') to += '\0';
  }
  to.append("\0\1", 2);
}

// Writes a signed number in as few bytes as possible, 7 bits per byte, most significant byte first.
// The number of leading bits that are equal to the inverted sign is the number of bytes.
void WriteSigned(int64_t value, std::string& to) {
  const auto magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  const auto length = static_cast<size_t>(std::bit_width(magnitude)) / 7 + 1;
  std::string bytes(10, value < 0 ? '\xFF' : '\0');
  for (size_t i = 0; i < 8; ++i)
    bytes[9 - i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xFF);
  bytes.erase(0, bytes.size() - length);
  for (size_t bit = 0; bit < length; ++bit)
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (0x80 >> bit % 8));
  to += bytes;
}

// Returns the number of elements in the slice, or nullopt if the slice is not within the shape.
std::optional<int64_t> ElementsWithin(const Shape& shape, const TensorSlice& slice) {
  const std::vector<int64_t>& dims = shape.dims();
  if (slice.start.size() != dims.size() || slice.length.size() != dims.size()) return std::nullopt;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (slice.start[d] < 0 || slice.length[d] < 0 || slice.length[d] > dims[d] ||
        slice.start[d] > dims[d] - slice.length[d])
      return std::nullopt;
  }
  return Shape(slice.length).CheckedElements();
}

bool Overlap(const TensorSlice& a, const TensorSlice& b) {
  for (size_t d = 0; d < a.start.size(); ++d) {
    const int64_t begin = std::max(a.start[d], b.start[d]);
    if (begin >= std::min(a.start[d] + a.length[d], b.start[d] + b.length[d])) return false;
  }
  return true;
}

}  // namespace

std::string TensorSlice::ToString() const {
  std::string text = "[";
  for (size_t d = 0; d < start.size(); ++d) {
    const int64_t end =
        static_cast<int64_t>(static_cast<uint64_t>(start[d]) + static_cast<uint64_t>(length[d]));
    text += StrCat(d == 0 ? "" : ", ", start[d], ":", end);
  }
  return text + "]";
}

TensorSlice WholeSlice(const Shape& shape) {
  return {.start = std::vector<int64_t>(shape.dims().size(), 0), .length = shape.dims()};
}

std::string SliceKey(std::string_view name, std::span<const int64_t> starts,
                     std::span<const int64_t> lengths) {
  std::string key;
  WriteNumber(0, key);
  WriteText(name, key);
  WriteNumber(starts.size(), key);
  for (size_t d = 0; d < starts.size(); ++d) {
    WriteSigned(starts[d], key);
    WriteSigned(lengths[d], key);
  }
  return key;
}

Status CheckPartition(const Shape& shape, std::span<const TensorSlice* const> slices) {
  const std::optional<int64_t> elements = shape.CheckedElements();
  if (!elements) return DataLoss("its shape ", shape.ToString(), " is too large");
  unsigned __int128 sum = 0;
  for (const TensorSlice* slice : slices) {
    const std::optional<int64_t> size = ElementsWithin(shape, *slice);
    if (!size)
      return DataLoss("slice ", slice->ToString(), " is not within the shape ", shape.ToString());
    sum += static_cast<unsigned __int128>(*size);
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (Overlap(*slices[k], *slices[i])) {
        return DataLoss("slice ", slices[i]->ToString(), " overlaps slice ", slices[k]->ToString());
      }
    }
  }
  if (sum == static_cast<unsigned __int128>(*elements)) return OkStatus();
  // The slices are disjoint and within the shape, so they cannot contain too many elements.
  return DataLoss("its ", slices.size(), " slices contain only ", static_cast<int64_t>(sum),
                  " of the ", *elements, " elements of the shape ", shape.ToString());
}

SlicePositions::SlicePositions(const Shape& shape, const TensorSlice& slice) {
  std::vector<int64_t> strides(slice.start.size()), slice_strides(slice.start.size());
  if (Shape(slice.length).CheckedElements() == 0) {
    size_ = 0;  // the strides of an empty tensor might not fit into 63 bits
    return;
  }
  int64_t stride = 1;
  bool contiguous = true;
  size_t kept = slice.start.size();  // dimensions from this one on are whole in the slice
  for (size_t d = slice.start.size(); d-- > 0;) {
    strides[d] = stride;
    slice_strides[d] = size_;
    const int64_t dim = shape.dims()[d];
    stride *= dim;
    size_ *= slice.length[d];
    if (contiguous) block_ = size_;
    if (contiguous && slice.length[d] == dim) kept = d;
    if (slice.length[d] != dim) contiguous = false;
  }
  for (size_t d = 0; d < kept; ++d)
    dimensions_.push_back({strides[d], slice_strides[d], slice.start[d], slice.length[d]});
}

int64_t SlicePositions::InTensor(int64_t position) const {
  int64_t result = 0;
  for (const Dimension& dimension : dimensions_) {
    result += (position / dimension.slice_stride + dimension.start) * dimension.stride;
    position %= dimension.slice_stride;
  }
  return result + position;
}

std::optional<int64_t> SlicePositions::InSlice(int64_t position) const {
  if (size_ == 0) return std::nullopt;
  int64_t result = 0;
  for (const Dimension& dimension : dimensions_) {
    const int64_t index = position / dimension.stride - dimension.start;
    if (index < 0 || index >= dimension.length) return std::nullopt;
    result += index * dimension.slice_stride;
    position %= dimension.stride;
  }
  return result + position;
}

}  // namespace tfjob::io
