// Copies converted values of a column to the rows of a batch.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/data/column.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// The values of one column for several examples.
struct ColumnValues {
  Column column;
  Tensor values;      // as ConvertColumn returns them
  int64_t width = 0;  // elements per example of `values`
};

// Converts the values of a column for all examples. Propagates errors from ConvertColumn.
StatusOr<ColumnValues> ReadColumn(const Dataset& dataset, const Column& column);

// Returns whether examples of this shape, as float32, need no conversion for the column other than
// the multiplication by `scale`.
bool TakesFloats(const Column& column, const Shape& shape);

// Fills the tensor with the examples `rows` of `source`, and completes their conversion. The tensor
// must have the column's type. Its shape must be rows.size(), followed by the column's shape.
// Allocates nothing.
void CopyRows(const ColumnValues& source, std::span<const int64_t> rows, Tensor& tensor);
// Fills row places[i] of the tensor with the example rows[i], as CopyRows does, and leaves all
// other rows unchanged. `places` and `rows` must have the same length.
void CopyRowsTo(std::span<const int64_t> places, const ColumnValues& source,
                std::span<const int64_t> rows, Tensor& tensor);

}  // namespace tfjob::data
