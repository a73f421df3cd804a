#include "runtime/data/arrays/stored_array.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace tfjob::data {
namespace {

constexpr uint64_t kBlock = 16 << 20;  // bytes that are reordered at once

// Returns, for each element of an example in Fortran order, its index in C order.
std::vector<uint64_t> IndicesInCOrder(const Shape& example) {
  const std::vector<int64_t>& dims = example.dims();
  std::vector<int64_t> strides(dims.size(), 1), index(dims.size(), 0);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  std::vector<uint64_t> indices(static_cast<size_t>(example.num_elements()));
  int64_t at = 0;
  for (uint64_t& next : indices) {
    next = static_cast<uint64_t>(at);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      at += strides[axis];
      if (++index[axis] < dims[axis]) break;
      at -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
  return indices;
}

}  // namespace

StatusOr<std::shared_ptr<const ArrayFile>> ArrayFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(io::RandomAccessFile file, io::RandomAccessFile::Open(path));
  ASSIGN_OR_RETURN(const FileVersion version, FileVersion::Of(file));
  return std::shared_ptr<const ArrayFile>(new ArrayFile(std::move(file), version));
}

Status ArrayFile::CheckUnchanged() const {
  ASSIGN_OR_RETURN(const FileVersion now, FileVersion::Of(file_));
  if (now.size == version_.size && now.modified == version_.modified) return OkStatus();
  return FailedPrecondition(file_.path(), ": the file has changed since this task opened it; do ",
                            "not change files of arrays while tasks read them");
}

Status StoredBytes::Read(uint64_t offset, std::span<std::byte> bytes) const {
  return file != nullptr ? file->file().Read(begin + offset, bytes)
                         : temporary->Read(begin + offset, bytes);
}

Shape StoredArray::example_shape() const {
  const std::vector<int64_t>& dims = layout.shape.dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

uint64_t StoredArray::example_bytes() const {
  return static_cast<uint64_t>(example_shape().num_elements()) * layout.item;
}

Status StoreInCOrder(StoredArray& array, const std::shared_ptr<TemporaryFile>& temporary) {
  const auto examples = static_cast<uint64_t>(array.examples());
  const uint64_t width = array.example_bytes(), item = array.layout.item;
  const std::vector<uint64_t> indices = IndicesInCOrder(array.example_shape());
  const uint64_t most = std::min(examples, std::max<uint64_t>(kBlock / width, 16));
  std::vector<std::byte> column(most * item);
  std::string block(most * width, '\0');
  const uint64_t begin = temporary->size();
  for (uint64_t first = 0; first < examples; first += most) {
    const uint64_t count = std::min(most, examples - first);
    const std::span<std::byte> items = std::span(column).first(count * item);
    for (uint64_t i = 0; i < indices.size(); ++i) {
      RETURN_IF_ERROR(array.bytes.Read((i * examples + first) * item, items));
      for (uint64_t row = 0; row < count; ++row)
        std::memcpy(&block[row * width + indices[i] * item], &items[row * item], item);
    }
    RETURN_IF_ERROR(temporary->Append(std::string_view(block).substr(0, count * width)));
  }
  RETURN_IF_ERROR(array.bytes.CheckUnchanged());
  array.bytes = {.file = nullptr, .temporary = temporary, .begin = begin};
  array.layout.fortran = false;
  return OkStatus();
}

}  // namespace tfjob::data
