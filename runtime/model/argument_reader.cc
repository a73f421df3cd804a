#include "runtime/model/argument_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/model/keras_layer.h"
#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/constraint.h"
#include "runtime/model/layer/initializer.h"
#include "runtime/tensor/half.h"

namespace tfjob::model {

std::optional<JsonField> ArgumentReader::Given(std::string_view name, bool required,
                                               std::string_view expected) {
  const JsonField field = arguments_[name];
  if (!status_.ok()) return std::nullopt;
  if (field.present()) return field;
  if (required) Keep(arguments_.Named(field.Mismatch(expected)));
  return std::nullopt;
}

void ArgumentReader::Integer(std::string_view name, int64_t& value, const IntegerRule& rule) {
  const std::optional<JsonField> field = Given(name, rule.required, rule.expected);
  if (!field) return;
  Keep(arguments_.Read(name, value));
  if (value < rule.least || value > rule.most)
    Keep(arguments_.Named(field->Mismatch(rule.expected)));
}

namespace {

bool Fits(double value, const NumberRule& rule) {
  return value >= rule.least && (rule.below_most ? value < rule.most : value <= rule.most);
}

}  // namespace

void ArgumentReader::Number(std::string_view name, double& value, const NumberRule& rule) {
  const std::optional<JsonField> field = Given(name, rule.required, rule.expected);
  if (!field) return;
  Keep(arguments_.Read(name, value));
  if (!Fits(value, rule)) Keep(arguments_.Named(field->Mismatch(rule.expected)));
}

void ArgumentReader::Flag(std::string_view name, bool& value) {
  if (Given(name, false, "")) Keep(arguments_.Read(name, value));
}

void ArgumentReader::Text(std::string_view name, std::string& value, bool required) {
  const std::optional<JsonField> field = Given(name, required, "a text");
  if (!field) return;
  const StatusOr<std::string> text = field->String();
  if (!text.ok()) return Keep(arguments_.Named(text.status()));
  value = *text;
}

void ArgumentReader::Numbers(std::string_view name, std::vector<double>& value) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  std::vector<JsonField> elements = {*field};
  if (field->value()->is_array()) elements = *field->Elements();
  value.clear();
  for (const JsonField& element : elements) {
    const StatusOr<double> number = element.Double();
    if (!number.ok()) return Keep(arguments_.Named(number.status()));
    value.push_back(*number);
  }
}

void ArgumentReader::Optional(std::string_view name, std::optional<int64_t>& value) {
  if (Given(name, false, "")) Keep(arguments_.Read(name, value));
}

void ArgumentReader::Optional(std::string_view name, std::optional<double>& value,
                              const NumberRule& rule) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  double read = 0;
  Keep(arguments_.Read(name, read));
  if (!Fits(read, rule)) Keep(arguments_.Named(field->Mismatch(rule.expected)));
  if (status_.ok()) value = read;
}

void ArgumentReader::CheckIntegers(const JsonField& field, const std::vector<int64_t>& values,
                                   const IntegerRule& rule) {
  const bool fit = std::ranges::all_of(
      values, [&](int64_t value) { return value >= rule.least && value <= rule.most; });
  if (!fit) Keep(arguments_.Named(field.Mismatch(rule.expected)));
}

void ArgumentReader::Integers(std::string_view name, std::vector<int64_t>& value,
                              const ListRule& rule) {
  const std::optional<JsonField> field = Given(name, rule.required, rule.expected);
  if (!field) return;
  Keep(arguments_.Read(name, value));
  if (rule.valid != nullptr && !rule.valid(value)) {
    Keep(arguments_.Named(field->Mismatch(rule.expected)));
  }
}

void ArgumentReader::CountOrList(std::string_view name, int64_t& count, std::vector<int64_t>& list,
                                 const IntegerRule& rule) {
  const std::optional<JsonField> field = Given(name, rule.required, rule.expected);
  if (!field) return;
  if (!field->value()->is_array()) return Integer(name, count, rule);
  Keep(arguments_.Read(name, list));
  if (list.empty()) Keep(arguments_.Named(field->Mismatch(rule.expected)));
  CheckIntegers(*field, list, rule);
}

void ArgumentReader::PerAxis(std::string_view name, std::vector<int64_t>& value,
                             const IntegerRule& rule) {
  const std::optional<JsonField> field = Given(name, rule.required, rule.expected);
  if (!field) return;
  if (field->value()->is_array()) {
    const size_t count = value.size();
    Keep(arguments_.Read(name, value));
    if (value.size() != count) Keep(arguments_.Named(field->Mismatch(rule.expected)));
  } else {
    int64_t one = 0;
    Keep(arguments_.Read(name, one));
    std::ranges::fill(value, one);
  }
  CheckIntegers(*field, value, rule);
}

namespace {

// Reads a pair of numbers, or a single number that applies to both ends of an axis, into the two
// elements at `into`. Returns false if the value is neither.
bool ReadPair(const JsonField& field, int64_t* into) {
  const bool pair = field.value()->is_array() && field.value()->size() == 2;
  for (size_t i = 0; i < 2; ++i) {
    const StatusOr<int64_t> side = (pair ? field[i] : field).Int();
    if (!side.ok()) return false;
    into[i] = *side;
  }
  return true;
}

}  // namespace

void ArgumentReader::Margins(std::string_view name, std::vector<int64_t>& value) {
  constexpr std::string_view kExpected =
      "a number of at least 0, or a list of one number or pair per axis";
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  const Json& given = *field->value();
  const size_t axes = value.size() / 2;
  const bool per_axis = given.is_array() && axes > 1;
  bool fits = !per_axis || given.size() == axes;
  for (size_t axis = 0; fits && axis < axes; ++axis)
    fits = ReadPair(per_axis ? (*field)[axis] : *field, &value[2 * axis]);
  if (!fits) return Keep(arguments_.Named(field->Mismatch(kExpected)));
  CheckIntegers(*field, value, {.least = 0, .expected = kExpected});
}

void ArgumentReader::Pairs(std::string_view name, std::vector<int64_t>& value) {
  constexpr std::string_view kExpected = "a list of pairs of numbers of at least 0";
  const std::optional<JsonField> field = Given(name, true, kExpected);
  if (!field) return;
  const StatusOr<std::vector<JsonField>> elements = field->Elements();
  value.clear();
  for (const JsonField& element : elements.ok() ? *elements : std::vector<JsonField>{}) {
    value.resize(value.size() + 2);
    if (!element.present() || !element.value()->is_array() ||
        !ReadPair(element, &value[value.size() - 2])) {
      return Keep(arguments_.Named(element.Mismatch("a pair of numbers of at least 0")));
    }
  }
  if (value.empty()) return Keep(arguments_.Named(field->Mismatch(kExpected)));
  CheckIntegers(*field, value, {.least = 0, .expected = kExpected});
}

void ArgumentReader::Axis(std::string_view name, int64_t& value) {
  std::vector<int64_t> axes = {value};
  Axes(name, axes);
  if (axes.size() != 1) return Keep(arguments_.Named(arguments_[name].Mismatch("one axis")));
  value = axes[0];
  // Null is not the default: with null, Keras operates on all axes at once, including the batch
  // axis.
  if (arguments_.IsNull(name)) {
    Keep(arguments_.Named(
        InvalidArgument(arguments_[name].path(), ": expected one axis, got null")));
  }
}

void ArgumentReader::Axes(std::string_view name, std::vector<int64_t>& value) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  if (field->value()->is_array()) return Keep(arguments_.Read(name, value));
  value.resize(1);
  Keep(arguments_.Read(name, value[0]));
}

void ArgumentReader::Sizes(std::string_view name, std::vector<int64_t>& value) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  std::vector<JsonField> elements = {*field};
  if (field->value()->is_array()) elements = *field->Elements();
  value.clear();
  for (const JsonField& element : elements) {
    const StatusOr<int64_t> size = element.IntOr(-1);
    if (!size.ok() || (element.present() && *size < 1))
      return Keep(arguments_.Named(element.Mismatch("a size of at least 1, or null")));
    value.push_back(*size);
  }
}

void ArgumentReader::Activation(std::string_view name, ActivationKind& value, bool required) {
  if (Given(name, required, "the name of an activation")) {
    Keep(ReadActivation(arguments_, name, value));
  }
}

void ArgumentReader::Initializer(std::string_view name, model::Initializer& value) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  StatusOr<model::Initializer> read = ReadInitializer(*field);
  if (!read.ok()) return Keep(arguments_.Named(read.status()));
  value = *read;
}

void ArgumentReader::Regularizer(std::string_view name, model::Regularizer& value) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  StatusOr<model::Regularizer> read = ReadRegularizer(*field);
  if (!read.ok()) return Keep(arguments_.Named(read.status()));
  value = *read;
}

void ArgumentReader::Constraint(std::string_view name, optimizer::Constraint& value) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  StatusOr<optimizer::Constraint> read = ReadConstraint(*field);
  if (!read.ok()) return Keep(arguments_.Named(read.status()));
  value = *std::move(read);
}

void ArgumentReader::Wrapped(std::string_view name, std::shared_ptr<const Layer>& value,
                             bool required) {
  const std::optional<JsonField> field = Given(name, required, "a layer");
  if (!field) return;
  LayerNames names;
  StatusOr<Layer> read = ReadLayer(*field, names);
  if (!read.ok()) return Keep(arguments_.Named(read.status()));
  value = std::make_shared<const Layer>(*std::move(read));
}

void ArgumentReader::WrappedList(std::string_view name,
                                 std::vector<std::shared_ptr<const Layer>>& value) {
  const std::optional<JsonField> field = Given(name, true, "a list of layers");
  if (!field) return;
  const auto elements = field->Elements();
  if (!elements.ok()) return Keep(arguments_.Named(elements.status()));
  LayerNames names;
  value.clear();
  for (const JsonField& element : *elements) {
    StatusOr<Layer> read = ReadLayer(element, names);
    if (!read.ok()) return Keep(arguments_.Named(read.status()));
    value.push_back(std::make_shared<const Layer>(*std::move(read)));
  }
}

void ArgumentReader::InputShape(Shape& value) {
  if (!status_.ok()) return;
  std::optional<Shape> given;
  Keep(arguments_.ReadBatchShape("batch_input_shape", given));
  Keep(arguments_.ReadBatchShape("batch_shape", given));
  Keep(arguments_.ReadShape("input_shape", given));
  Keep(arguments_.ReadShape("shape", given));
  if (given) {
    value = *std::move(given);
  } else {
    Keep(arguments_.Named(arguments_["batch_shape"].Mismatch("a list such as [null, 28, 28]")));
  }
}

void ArgumentReader::Type(std::string_view name, DType& value) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) return;
  const StatusOr<std::string> text = field->String();
  const std::optional<DType> read = text.ok() ? ParseDType(*text) : std::nullopt;
  if (!read || IsHalf(*read)) {
    return Keep(
        arguments_.Named(field->Mismatch("one of float32, float64, int32, int64, uint8, bool")));
  }
  value = *read;
}

void ArgumentReader::ChoiceIndex(std::string_view name, size_t& value,
                                 std::span<const std::string_view> names) {
  const std::optional<JsonField> field = Given(name, false, "");
  if (!field) {
    const auto null = std::ranges::find(names, "null");
    if (null != names.end() && arguments_.IsNull(name))
      value = static_cast<size_t>(null - names.begin());
    return;
  }
  const StatusOr<std::string> text = field->String();
  const auto found = text.ok() ? std::ranges::find(names, *text) : names.end();
  if (found == names.end()) {
    std::string expected = "one of";
    for (size_t i = 0; i < names.size(); ++i) expected += StrCat(i == 0 ? " " : ", ", names[i]);
    return Keep(arguments_.Named(field->Mismatch(expected)));
  }
  value = static_cast<size_t>(found - names.begin());
}

void ArgumentReader::Only(std::string_view name, std::string_view value) {
  Keep(arguments_.Only(name, value));
}

}  // namespace tfjob::model
