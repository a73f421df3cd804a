#include "runtime/api/form.h"

#include <cmath>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/model/keras.h"

namespace tfjob::api {
namespace {

Json PairsOf(const std::vector<int64_t>& values) {
  Json pairs = Json::array();
  for (size_t i = 0; i + 1 < values.size(); i += 2)
    pairs.push_back(Json::array({values[i], values[i + 1]}));
  // Keep an unpaired last number: the reader rejects it, with a message that says what it expects.
  if (values.size() % 2 != 0) pairs.push_back(values.back());
  return pairs;
}

}  // namespace

Json ToJson(const Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value.held());
}

Json ToJson(const Named& named) {
  if (named.arguments.empty()) return named.name;
  Json arguments = Json::object();
  for (const auto& [name, value] : named.arguments) arguments[name] = ToJson(value);
  Json form = Json::object();
  form[named.name] = std::move(arguments);
  return form;
}

Json MetricJson(const Named& metric) {
  if (metric.arguments.empty() && metric.model == nullptr) return metric.name;
  Json form = {{"name", metric.name}};
  if (metric.model != nullptr) {
    const ModelData& model = Access::Data(*metric.model);
    if (model.model != nullptr) form["model"] = model::WriteKerasJson(*model.model);
  }
  // Keras' argument `name`, which renames the metric, is called `as` in training files.
  for (const auto& [name, value] : metric.arguments)
    form[name == "name" ? "as" : name] = ToJson(value);
  return form;
}

void Form::Set(const char* key, double value) {
  if (!std::isfinite(value))
    error_.Update(
        InvalidArgument(data_.name, ": ", key, ": expected a finite number, got ", value));
  data_.arguments[key] = value;
}

void Form::Set(const char* key, const std::string& value) {
  if (!value.empty()) data_.arguments[key] = value;
}

void Form::Set(const char* key, const std::optional<bool>& value) {
  if (value) data_.arguments[key] = *value;
}

void Form::Set(const char* key, const std::optional<int64_t>& value) {
  if (value) data_.arguments[key] = *value;
}

void Form::Set(const char* key, const std::optional<double>& value) {
  if (value) Set(key, *value);
}

void Form::Set(const char* key, const std::vector<double>& value) {
  for (const double number : value) Set(key, number);  // checks the number
  if (!value.empty()) data_.arguments[key] = value;
}

void Form::Set(const char* key, const std::vector<std::string>& value) {
  if (!value.empty()) data_.arguments[key] = value;
}

void Form::Set(const char* key, const Integers& value) {
  if (value.values().empty()) return;
  data_.arguments[key] = value.one() ? Json(value.values()[0]) : Json(value.values());
}

void Form::Set(const char* key, const Named& value) {
  for (const auto& [name, argument] : value.arguments) {
    const double* number = std::get_if<double>(&argument.held());
    if (number != nullptr && !std::isfinite(*number)) {
      error_.Update(InvalidArgument(data_.name, ": ", key, ".", name,
                                    ": expected a finite number, got ", *number));
    }
    if (value.name.empty())
      error_.Update(InvalidArgument(data_.name, ": ", key, ": arguments without a name"));
  }
  if (!value.name.empty()) data_.arguments[key] = ToJson(value);
}

void Form::Set(const char* key, const Layer& value) {
  if (!value.present()) return;
  const LayerData& layer = Access::Data(value);
  error_.Update(layer.error);
  if (layer.values != nullptr) {
    error_.Update(
        Unimplemented(data_.name, ": ", key, ": model ", layer.name(), " has weights from ",
                      "a file, which would be lost in a layer that contains it; call the ",
                      "model itself, or use Model::Clone, which has no weights"));
  }
  data_.arguments[key] = layer.form;
}

void Form::Set(const char* key, const std::vector<Layer>& value) {
  if (value.empty()) return;
  Json list = Json::array();
  for (const Layer& element : value) {
    Form one("");
    one.Set("layer", element);
    error_.Update(one.error());
    list.push_back(one.data().arguments["layer"]);
  }
  data_.arguments[key] = std::move(list);
}

void Form::SetChoice(const char* key, const std::string& value) {
  data_.arguments[key] = value.empty() ? Json() : Json(value);
}

void Form::SetPairs(const char* key, const Integers& value) {
  if (value.values().empty()) return;
  data_.arguments[key] = value.one() ? Json(value.values()[0]) : PairsOf(value.values());
}

void Form::SetMargins(const char* key, const Integers& value, size_t axes) {
  if (axes > 1 && !value.one() && value.values().size() == 2 * axes) {
    data_.arguments[key] = PairsOf(value.values());
  } else {
    Set(key, value);
  }
}

void Form::SetSizes(const char* key, const Integers& value) {
  if (value.values().empty()) return;
  Json sizes = Json::array();
  for (const int64_t size : value.values()) sizes.push_back(size < 0 ? Json() : Json(size));
  data_.arguments[key] = std::move(sizes);
}

}  // namespace tfjob::api
