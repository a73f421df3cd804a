#include "runtime/io/stored_tensor.h"

#include "runtime/base/check.h"
#include "runtime/io/data_file.h"

namespace tfjob::io {

Status StoredTensor::Read(int64_t offset, std::span<std::byte> to) const {
  const int64_t bytes = shape_.num_elements() * static_cast<int64_t>(SizeOf(dtype_));
  if (offset < 0 || offset > bytes || to.size() > static_cast<size_t>(bytes - offset)) {
    return InvalidArgument("expected bytes of a tensor of ", bytes, " bytes, got ", to.size(),
                           " from byte ", offset);
  }
  return file_->Read(offset_ + offset, to);
}

Status StoredTensor::ReadRows(std::span<const int64_t> indices, std::span<std::byte> rows) const {
  if (shape_.rank() != 2) return InvalidArgument("expected a matrix, got ", shape_.ToString());
  const size_t row = static_cast<size_t>(shape_.dim(1)) * SizeOf(dtype_);
  ENFORCE(rows.size() == indices.size() * row, "as many rows as indices");
  for (size_t i = 0; i < indices.size() && indices[i] >= 0; ++i) {
    if (indices[i] >= shape_.dim(0)) {
      return InvalidArgument("row ", indices[i], ": expected 0 to ", shape_.dim(0) - 1);
    }
    const int64_t offset = offset_ + indices[i] * static_cast<int64_t>(row);
    RETURN_IF_ERROR(file_->Read(offset, rows.subspan(i * row, row)));
  }
  return OkStatus();
}

}  // namespace tfjob::io
