// Represents single examples, for functions that compute them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/data/operators/fields.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// Values without an axis for the examples. The names differ.
using Example = std::vector<NamedTensor>;

// Returns the fields of a source whose examples are like this one; `file` is what error messages
// call the source. Returns InvalidArgument if there are no values, or two of the same name.
StatusOr<std::vector<Field>> FieldsOf(const Example& example, const std::string& file);

// Copies the values, one per field, to row `row` of the arrays of the fields. Returns
// InvalidArgument unless the example has exactly these fields, in any order.
Status Store(const Example& example, std::span<const Field> fields, size_t row,
             std::span<Array> arrays);

// Returns the values of row `row` of the tensors.
Example RowOf(std::span<const NamedTensor> tensors, size_t row);

// Returns a tensor for `rows` values of the field.
Tensor TensorFor(const Field& field, int64_t rows);

}  // namespace tfjob::data
