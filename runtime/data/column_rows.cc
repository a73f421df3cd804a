#include "runtime/data/column_rows.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/data/convert.h"
#include "runtime/data/dataset.h"

namespace tfjob::data {
namespace {

// Returns whether a row of a batch has the same bytes as the row of the column.
bool HasFinalBytes(const ColumnValues& source) {
  const DType stored = source.values.dtype();
  const bool scaled = stored == DType::kFloat32 && source.column.scale != 1;
  return !source.column.one_hot && !scaled && stored == source.column.dtype;
}

bool AreConsecutive(std::span<const int64_t> rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] != rows[i - 1] + 1) return false;
  }
  return true;
}

// Writes one row of a column to a row of a batch.
void CopyRow(const ColumnValues& source, const std::byte* from, std::span<std::byte> to) {
  const Column& column = source.column;
  const DType stored = source.values.dtype();
  if (column.one_hot) {
    ENFORCE(stored == DType::kInt64, "class numbers, which the conversion has checked");
    const auto* classes = reinterpret_cast<const int64_t*>(from);
    auto* row = reinterpret_cast<float*>(to.data());
    std::fill_n(row, source.width * column.classes, 0.0f);
    for (int64_t i = 0; i < source.width; ++i) row[i * column.classes + classes[i]] = 1;
  } else if (stored == DType::kUInt8 && column.dtype == DType::kFloat32) {
    ScaleRow(reinterpret_cast<const uint8_t*>(from), source.width, column.scale,
             reinterpret_cast<float*>(to.data()));
  } else if (stored == DType::kFloat32 && column.scale != 1) {
    ScaleRow(reinterpret_cast<const float*>(from), source.width, column.scale,
             reinterpret_cast<float*>(to.data()));
  } else {
    std::memcpy(to.data(), from, to.size());
  }
}

// Copies the examples `rows`. Example rows[i] fills `to_bytes` bytes of the tensor, starting at
// byte begin(i).
template <typename Begin>
void CopyEach(const ColumnValues& source, std::span<const int64_t> rows, Tensor& tensor,
              const Begin& begin, size_t to_bytes) {
  const size_t from_bytes = static_cast<size_t>(source.width) * SizeOf(source.values.dtype());
  const std::byte* base = source.values.bytes().data();
  const auto at = [&](size_t i) { return base + static_cast<size_t>(rows[i]) * from_bytes; };
  for (size_t i = 0; i < rows.size(); ++i) {
    // The rows are scattered in memory, so the hardware cannot predict where the next row starts.
    // Prefetch the first cache line of the row; the hardware then prefetches the remaining ones.
    if (i + 2 < rows.size()) __builtin_prefetch(at(i + 2));
    CopyRow(source, at(i), {tensor.bytes().data() + begin(i), to_bytes});
  }
}

}  // namespace

StatusOr<ColumnValues> ReadColumn(const Dataset& dataset, const Column& column) {
  ColumnValues read{.column = column};
  ASSIGN_OR_RETURN(read.values, ConvertColumn(dataset, column));
  read.width = read.values.num_elements() / dataset.size();
  return read;
}

bool TakesFloats(const Column& column, const Shape& shape) {
  return column.dtype == DType::kFloat32 && column.classes == 0 && !column.one_hot &&
         column.class_weights.empty() && column.shape.num_elements() == shape.num_elements();
}

void CopyRows(const ColumnValues& source, std::span<const int64_t> rows, Tensor& tensor) {
  if (rows.empty()) return;
  const size_t to_bytes = tensor.num_bytes() / rows.size();
  if (HasFinalBytes(source) && AreConsecutive(rows)) {
    const std::byte* first = source.values.bytes().data() + static_cast<size_t>(rows[0]) * to_bytes;
    std::memcpy(tensor.bytes().data(), first, tensor.num_bytes());
    return;
  }
  CopyEach(source, rows, tensor, [to_bytes](size_t i) { return i * to_bytes; }, to_bytes);
}

void CopyRowsTo(std::span<const int64_t> places, const ColumnValues& source,
                std::span<const int64_t> rows, Tensor& tensor) {
  if (rows.empty()) return;
  const size_t to_bytes = tensor.num_bytes() / static_cast<size_t>(tensor.shape().dim(0));
  const auto at = [&](size_t i) { return static_cast<size_t>(places[i]) * to_bytes; };
  CopyEach(source, rows, tensor, at, to_bytes);
}

}  // namespace tfjob::data
