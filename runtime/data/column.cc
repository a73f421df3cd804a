#include "runtime/data/column.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/base/check.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/half.h"

namespace tfjob::data {
namespace {

// An element of a tensor of any type. Integers stay exact.
struct Number {
  bool whole = true;  // the value is `integer` if set, and `real` otherwise
  int64_t integer = 0;
  double real = 0;

  double value() const { return whole ? static_cast<double>(integer) : real; }
};

std::string TextOf(const Number& number) {
  return number.whole ? StrCat(number.integer) : StrCat(number.real);
}

Number OfReal(double real) {
  // Whole numbers whose magnitude is below 2^63 fit in int64.
  const bool whole = std::floor(real) == real && std::fabs(real) < 0x1p63;
  return {.whole = whole, .integer = whole ? static_cast<int64_t>(real) : 0, .real = real};
}

Number NumberAt(const Tensor& tensor, size_t i) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return OfReal(static_cast<double>(tensor.data<float>()[i]));
    case DType::kFloat64:
      return OfReal(tensor.data<double>()[i]);
    case DType::kInt32:
      return {.integer = tensor.data<int32_t>()[i]};
    case DType::kInt64:
      return {.integer = tensor.data<int64_t>()[i]};
    case DType::kUInt8:
      return {.integer = tensor.data<uint8_t>()[i]};
    case DType::kBool:
      return {.integer = tensor.data<bool>()[i] ? 1 : 0};
    case DType::kBFloat16:
      return OfReal(static_cast<double>(static_cast<float>(tensor.data<BFloat16>()[i])));
    case DType::kFloat16:
      return OfReal(static_cast<double>(static_cast<float>(tensor.data<Float16>()[i])));
  }
  return {};
}

template <typename T>
bool StoreWhole(const Number& number, Tensor& tensor, size_t i) {
  if (!number.whole || number.integer < int64_t{std::numeric_limits<T>::min()} ||
      number.integer > int64_t{std::numeric_limits<T>::max()})
    return false;
  tensor.data<T>()[i] = static_cast<T>(number.integer);
  return true;
}

template <typename Half>
bool StoreHalf(const Number& number, Tensor& tensor, size_t i) {
  Half& to = tensor.data<Half>()[i];
  to = Half(static_cast<float>(number.value()));
  return std::isfinite(static_cast<float>(to));
}

// Stores a number in the tensor's type. Returns false if the type cannot represent the number.
bool StoreAt(const Number& number, Tensor& tensor, size_t i) {
  switch (tensor.dtype()) {
    case DType::kFloat32: {
      float& to = tensor.data<float>()[i];
      to = static_cast<float>(number.value());
      return std::isfinite(to);
    }
    case DType::kFloat64:
      tensor.data<double>()[i] = number.value();
      return std::isfinite(number.value());
    case DType::kInt32:
      return StoreWhole<int32_t>(number, tensor, i);
    case DType::kInt64:
      return StoreWhole<int64_t>(number, tensor, i);
    case DType::kUInt8:
      return StoreWhole<uint8_t>(number, tensor, i);
    case DType::kBool:
      return StoreWhole<bool>(number, tensor, i);
    case DType::kBFloat16:
      return StoreHalf<BFloat16>(number, tensor, i);
    case DType::kFloat16:
      return StoreHalf<Float16>(number, tensor, i);
  }
  return false;
}

std::string ExpectedOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kBFloat16:
    case DType::kFloat16:
      return StrCat("a finite number that fits into ", Name(dtype));
    case DType::kBool:
      return "0 or 1";
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
      break;
  }
  return StrCat("an integer that fits into ", Name(dtype));
}

// Returns the index of the first value that is not finite, or the number of values if all are.
template <typename T>
size_t FirstNotFinite(const Tensor& tensor) {
  const std::span<const T> values = tensor.data<T>();
  const auto found = std::ranges::find_if_not(values, [](T value) { return std::isfinite(value); });
  return static_cast<size_t>(found - values.begin());
}

class ColumnConverter {
 public:
  ColumnConverter(const Dataset& dataset, const Array& array, const Column& column)
      : dataset_(dataset), array_(array), column_(column), values_(array.values) {
    width_ = std::max<int64_t>(array.example_shape().num_elements(), 1);
  }

  StatusOr<Tensor> Convert() const {
    RETURN_IF_ERROR(CheckElements());
    if (!column_.class_weights.empty()) return WeightsOfClasses();
    if (column_.classes > 0) return ClassNumbers();
    if (column_.one_hot) {
      return InvalidArgument(array_.file, ": ", column_.name,
                             ": rows with a one for each class need at least one class");
    }
    const bool bytes = values_.dtype() == DType::kUInt8 && column_.dtype == DType::kFloat32;
    if (bytes) return values_;
    if (values_.dtype() == column_.dtype) {
      RETURN_IF_ERROR(CheckFinite());
      return values_;
    }
    Tensor converted(column_.dtype, values_.shape(), Buffer::Contents::kUndefined);
    for (size_t i = 0; i < Count(); ++i) {
      if (!StoreAt(NumberAt(values_, i), converted, i)) return Unfit(i, ExpectedOf(column_.dtype));
    }
    return converted;
  }

 private:
  size_t Count() const { return static_cast<size_t>(values_.num_elements()); }

  // Returns how many values an example of the array should have. For a one-hot column, the values
  // are class numbers, one per row. For class weights, each value may be a row of scores instead.
  int64_t Places() const {
    const int64_t elements = column_.shape.num_elements();
    return column_.one_hot && column_.classes > 0 ? elements / column_.classes : elements;
  }

  Status CheckElements() const {
    const int64_t places = Places();
    if (places == width_) return OkStatus();
    const bool scores = !column_.class_weights.empty() && places > 0 && width_ % places == 0;
    if (scores) return OkStatus();
    return InvalidArgument(array_.file, ": expected examples of ", places, " elements, for ",
                           column_.name, " of shape ", column_.shape.ToString(),
                           ", got examples of shape ", array_.example_shape().ToString());
  }

  Status Unfit(size_t element, std::string_view expected) const {
    const auto row = static_cast<int64_t>(element) / width_;
    return InvalidArgument(dataset_.Place(array_, row), ": expected ", expected, " for ",
                           column_.name, ", got ", TextOf(NumberAt(values_, element)));
  }

  Status CheckFinite() const {
    if (values_.dtype() != DType::kFloat32 && values_.dtype() != DType::kFloat64) return OkStatus();
    const size_t found = values_.dtype() == DType::kFloat32 ? FirstNotFinite<float>(values_)
                                                            : FirstNotFinite<double>(values_);
    return found == Count() ? OkStatus() : Unfit(found, "a finite number");
  }

  StatusOr<Tensor> ClassNumbers() const {
    Tensor numbers(DType::kInt64, values_.shape(), Buffer::Contents::kUndefined);
    for (size_t i = 0; i < Count(); ++i) {
      const Number number = NumberAt(values_, i);
      const bool is_class = number.integer >= 0 && number.integer < column_.classes;
      if (!number.whole || (!is_class && number.integer != column_.ignored_class)) {
        return InvalidArgument(dataset_.Place(array_, static_cast<int64_t>(i) / width_), ": label ",
                               TextOf(number), " is out of range; expected an integer from 0 to ",
                               column_.classes - 1, ", since the model has ", column_.classes,
                               " outputs");
      }
      numbers.data<int64_t>()[i] = number.integer;
    }
    return numbers;
  }

  // Returns the class at position `place`, counted over all examples. Each position has `scores`
  // elements in the array: a class number if `scores` is 1, and a row of scores otherwise. As in
  // Keras, class numbers are rounded, and the first of the largest scores determines the class.
  StatusOr<int64_t> ClassAt(size_t place, size_t scores) const {
    if (scores == 1) {
      const double value = std::nearbyint(NumberAt(values_, place).value());
      if (std::fabs(value) < 0x1p63) return static_cast<int64_t>(value);
      return Unfit(place, "a class number");
    }
    size_t best = 0;
    for (size_t i = 1; i < scores; ++i) {
      if (NumberAt(values_, place * scores + i).value() >
          NumberAt(values_, place * scores + best).value())
        best = i;
    }
    return static_cast<int64_t>(best);
  }

  StatusOr<Tensor> WeightsOfClasses() const {
    std::vector<int64_t> dims = column_.shape.dims();
    dims.insert(dims.begin(), dataset_.size());
    Tensor weights(DType::kFloat32, Shape(std::move(dims)), Buffer::Contents::kUndefined);
    const auto scores = static_cast<size_t>(width_ / column_.shape.num_elements());
    for (size_t i = 0; i < static_cast<size_t>(weights.num_elements()); ++i) {
      ASSIGN_OR_RETURN(const int64_t label, ClassAt(i, scores));
      const auto found = column_.class_weights.find(label);
      weights.data<float>()[i] =
          found == column_.class_weights.end() ? 1.0f : static_cast<float>(found->second);
    }
    return weights;
  }

  const Dataset& dataset_;
  const Array& array_;
  const Column& column_;
  const Tensor& values_;
  int64_t width_;  // elements per example
};

}  // namespace

Column FloatColumn(const Dataset& dataset, const std::string& array, float scale) {
  const Array* found = dataset.Find(array);
  ENFORCE(found != nullptr, "an array of the dataset");
  return {.name = array, .array = array, .shape = found->example_shape(), .scale = scale};
}

std::vector<Column> FloatColumns(const Dataset& dataset) {
  std::vector<Column> columns;
  for (const Array& array : dataset.arrays) columns.push_back(FloatColumn(dataset, array.name));
  return columns;
}

Column ClassColumn(const std::string& array, int64_t classes) {
  return {.name = array, .array = array, .dtype = DType::kInt64, .classes = classes};
}

Column OneHotColumn(const std::string& array, int64_t classes) {
  return {.name = array, .array = array, .shape = {classes}, .classes = classes, .one_hot = true};
}

StatusOr<Tensor> ConvertColumn(const Dataset& dataset, const Column& column) {
  const Array* array = dataset.Find(column.array);
  if (array == nullptr) {
    return InvalidArgument(dataset.arrays[0].file, ": the data has no array ", column.array,
                           ", which ", column.name, " needs");
  }
  return ColumnConverter(dataset, *array, column).Convert();
}

}  // namespace tfjob::data
