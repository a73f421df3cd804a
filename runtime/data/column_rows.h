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

// Converts a column of the dataset. Returns the errors of ConvertColumn.
StatusOr<ColumnValues> ReadColumn(const Dataset& dataset, const Column& column);

// Returns whether float32 values of this shape become values of the column without a conversion,
// except that they are multiplied by `scale`.
bool TakesFloats(const Column& column, const Shape& shape);

// Fills the tensor with the examples `rows` of `source`. The tensor must have the column's type,
// and the column's shape for rows.size() examples. Allocates nothing.
void CopyRows(const ColumnValues& source, std::span<const int64_t> rows, Tensor& tensor);
// Does the same for the rows `places` of the tensor, as many as `rows`.
void CopyRowsTo(std::span<const int64_t> places, const ColumnValues& source,
                std::span<const int64_t> rows, Tensor& tensor);

}  // namespace tfjob::data
