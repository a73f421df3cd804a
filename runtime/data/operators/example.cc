#include "runtime/data/operators/example.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tfjob::data {
namespace {

std::string TypeText(DType dtype, const Shape& shape) {
  return StrCat(Name(dtype), " ", shape.ToString());
}

std::string NamesIn(const Example& example) {
  std::string names;
  for (const NamedTensor& value : example) names += (names.empty() ? "" : ", ") + value.name;
  return names.empty() ? "no values" : names;
}

}  // namespace

StatusOr<std::vector<Field>> FieldsOf(const Example& example, const std::string& file) {
  if (example.empty()) return InvalidArgument(file, ": expected an example, got no values");
  std::vector<Field> fields;
  for (const NamedTensor& value : example) {
    if (std::ranges::find(fields, value.name, &Field::name) != fields.end())
      return InvalidArgument(file, ": expected one ", value.name, " in an example, got two");
    fields.push_back({value.name, file, value.value.dtype(), value.value.shape()});
  }
  return fields;
}

Status Store(const Example& example, std::span<const Field> fields, size_t row,
             std::span<Array> arrays) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    const auto found = std::ranges::find(example, field.name, &NamedTensor::name);
    if (found == example.end() || example.size() != fields.size()) {
      std::string names;
      for (const Field& of : fields) names += (names.empty() ? "" : ", ") + of.name;
      return InvalidArgument("expected the values ", names, ", as in example 0, got ",
                             NamesIn(example));
    }
    const Tensor& value = found->value;
    if (value.dtype() != field.dtype || value.shape() != field.shape) {
      return InvalidArgument("expected ", field.name, " as ", TypeText(field.dtype, field.shape),
                             ", as in example 0, got ", TypeText(value.dtype(), value.shape()));
    }
    if (value.num_bytes() == 0) continue;
    std::memcpy(arrays[i].values.bytes().data() + row * value.num_bytes(), value.bytes().data(),
                value.num_bytes());
  }
  return OkStatus();
}

Example RowOf(std::span<const NamedTensor> tensors, size_t row) {
  Example example;
  for (const NamedTensor& tensor : tensors) {
    std::vector<int64_t> dims = tensor.value.shape().dims();
    dims.erase(dims.begin());
    Tensor value(tensor.value.dtype(), Shape(std::move(dims)), Buffer::Contents::kUndefined);
    if (value.num_bytes() > 0) {
      std::memcpy(value.bytes().data(), tensor.value.bytes().data() + row * value.num_bytes(),
                  value.num_bytes());
    }
    example.push_back({tensor.name, std::move(value)});
  }
  return example;
}

Tensor TensorFor(const Field& field, int64_t rows) {
  std::vector<int64_t> dims = field.shape.dims();
  dims.insert(dims.begin(), rows);
  return Tensor(field.dtype, Shape(std::move(dims)));
}

}  // namespace tfjob::data
