// Defines single examples, the arguments and results of functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/operators/fields.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// The values of one example. All names must differ. The tensors have no axis for examples.
using Example = std::vector<NamedTensor>;

// Returns the fields of a source whose examples have the same names, types and shapes as this one.
// Error messages call the source `file`. Returns InvalidArgument if there are no values, or if two
// have the same name.
StatusOr<std::vector<Field>> FieldsOf(const Example& example, const std::string& file);

// Copies the values of the example to row `row` of the arrays; there is one array per field.
// Returns InvalidArgument unless the example has exactly these fields, in any order.
Status Store(const Example& example, std::span<const Field> fields, size_t row,
             std::span<Array> arrays);

// Returns the example in row `row` of the tensors.
Example RowOf(std::span<const NamedTensor> tensors, size_t row);

// Returns a tensor with memory for `rows` values of the field.
Tensor TensorFor(const Field& field, int64_t rows);

}  // namespace tfjob::data
