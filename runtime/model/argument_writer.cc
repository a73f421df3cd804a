#include "runtime/model/argument_writer.h"

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/model/keras_layer.h"
#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/constraint.h"
#include "runtime/model/layer/initializer.h"

namespace tfjob::model {

Json& ArgumentWriter::At(std::string_view name) {
  return config_[std::string(name)];
}

void ArgumentWriter::Integer(std::string_view name, int64_t& value, const IntegerRule&) {
  At(name) = value;
}
void ArgumentWriter::Number(std::string_view name, double& value, const NumberRule&) {
  At(name) = value;
}
void ArgumentWriter::Flag(std::string_view name, bool& value) {
  At(name) = value;
}
void ArgumentWriter::Text(std::string_view name, std::string& value, bool) {
  At(name) = value.empty() ? Json() : Json(value);
}
void ArgumentWriter::Numbers(std::string_view name, std::vector<double>& value) {
  At(name) = value.empty() ? Json() : value.size() == 1 ? Json(value[0]) : Json(value);
}
void ArgumentWriter::Optional(std::string_view name, std::optional<int64_t>& value) {
  At(name) = value ? Json(*value) : Json();
}
void ArgumentWriter::Optional(std::string_view name, std::optional<double>& value,
                              const NumberRule&) {
  At(name) = value ? Json(*value) : Json();
}
void ArgumentWriter::Integers(std::string_view name, std::vector<int64_t>& value, const ListRule&) {
  At(name) = value;
}
void ArgumentWriter::CountOrList(std::string_view name, int64_t& count, std::vector<int64_t>& list,
                                 const IntegerRule&) {
  At(name) = list.empty() ? Json(count) : Json(list);
}
void ArgumentWriter::PerAxis(std::string_view name, std::vector<int64_t>& value,
                             const IntegerRule&) {
  At(name) = value;
}
void ArgumentWriter::Margins(std::string_view name, std::vector<int64_t>& value) {
  if (value.size() == 2) {
    At(name) = value;
    return;
  }
  Pairs(name, value);
}
void ArgumentWriter::Pairs(std::string_view name, std::vector<int64_t>& value) {
  Json pairs = Json::array();
  for (size_t i = 0; i < value.size(); i += 2)
    pairs.push_back(std::vector<int64_t>{value[i], value[i + 1]});
  At(name) = std::move(pairs);
}
void ArgumentWriter::Axis(std::string_view name, int64_t& value) {
  At(name) = value;
}
// Like Keras, writes a single axis as a number.
void ArgumentWriter::Axes(std::string_view name, std::vector<int64_t>& value) {
  At(name) = value.size() == 1 ? Json(value[0]) : Json(value);
}
void ArgumentWriter::OptionalAxes(std::string_view name, std::vector<int64_t>& value) {
  if (value.empty()) {
    At(name) = Json();
  } else {
    Axes(name, value);
  }
}
void ArgumentWriter::Sizes(std::string_view name, std::vector<int64_t>& value) {
  if (value.empty()) {
    At(name) = Json();
    return;
  }
  Json sizes = Json::array();
  for (int64_t size : value) sizes.push_back(size < 0 ? Json() : Json(size));
  At(name) = std::move(sizes);
}
void ArgumentWriter::Activation(std::string_view name, ActivationKind& value, bool) {
  At(name) = std::string(Name(value));
}
void ArgumentWriter::Initializer(std::string_view name, model::Initializer& value) {
  At(name) = WriteInitializer(value);
}
void ArgumentWriter::Regularizer(std::string_view name, model::Regularizer& value) {
  At(name) = WriteRegularizer(value);
}
void ArgumentWriter::Constraint(std::string_view name, optimizer::Constraint& value) {
  At(name) = WriteConstraint(value);
}
void ArgumentWriter::Wrapped(std::string_view name, std::shared_ptr<const Layer>& value, bool) {
  At(name) = value == nullptr ? Json() : WriteLayer(*value);
}
void ArgumentWriter::WrappedList(std::string_view name,
                                 std::vector<std::shared_ptr<const Layer>>& value) {
  Json list = Json::array();
  for (const auto& layer : value) list.push_back(WriteLayer(*layer));
  At(name) = std::move(list);
}
void ArgumentWriter::InputShape(Shape& value) {
  At("batch_shape") = BatchShape(value);
}
void ArgumentWriter::Type(std::string_view name, DType& value) {
  At(name) = std::string(tfjob::Name(value));
}
void ArgumentWriter::ChoiceIndex(std::string_view name, size_t& value,
                                 std::span<const std::string_view> names) {
  At(name) = names[value] == "null" ? Json() : Json(std::string(names[value]));
}
void ArgumentWriter::Only(std::string_view name, std::string_view value) {
  StatusOr<Json> parsed = ParseJson(value, name);
  ENFORCE(parsed.ok(), "the only value of an argument is JSON in the source");
  At(name) = *std::move(parsed);
}

}  // namespace tfjob::model
