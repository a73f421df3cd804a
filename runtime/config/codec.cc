// Converts the value of a key between its JSON form in the training file and its member of
// TrainingConfig.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/base/did_you_mean.h"
#include "runtime/config/features.h"
#include "runtime/config/keys.h"
#include "runtime/config/maps.h"
#include "runtime/config/tokenize.h"

namespace tfjob::config {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// Formats a limit, which must be a whole number.
std::string Limit(double value) {
  return StrCat(static_cast<int64_t>(value));
}

Status CheckRange(const Key& key, const JsonField& field, double value) {
  if (!std::isfinite(value)) return field.Mismatch("a finite number");
  if (value >= key.minimum && value <= key.maximum) return OkStatus();
  if (!std::isfinite(key.maximum))
    return field.Mismatch("a value of at least " + Limit(key.minimum));
  if (!std::isfinite(key.minimum))
    return field.Mismatch("a value of at most " + Limit(key.maximum));
  return field.Mismatch(StrCat("a value from ", Limit(key.minimum), " to ", Limit(key.maximum)));
}

// Reads "1/255" or a plain number.
StatusOr<double> ReadFraction(const JsonField& field) {
  if (!field.present() || !field.value()->is_string()) {
    StatusOr<double> number = field.Double();
    return number.ok() ? number : field.Mismatch("a number, or a fraction such as \"1/255\"");
  }
  const std::string text = *field.String();
  // Accept only decimal digits, because strtod also accepts hexadecimal numbers, "inf" and "nan".
  const bool decimal = text.find_first_not_of("0123456789.eE+-/") == std::string::npos;
  char* end = nullptr;
  const double above = std::strtod(text.c_str(), &end);
  if (decimal && end != text.c_str() && *end == '/') {
    const char* divisor = end + 1;
    const double below = std::strtod(divisor, &end);
    if (end != divisor && *end == '\0' && below != 0) return above / below;
  }
  return field.Mismatch("a number, or a fraction such as \"1/255\"");
}

// Reads 4096, "64Ki", "32Mi" or "1Gi".
StatusOr<int64_t> ReadBytes(const JsonField& field) {
  constexpr std::string_view kExpected =
      "a number of bytes, or one with Ki, Mi or Gi, such as \"32Mi\"";
  if (!field.present() || !field.value()->is_string()) {
    StatusOr<int64_t> number = field.Int();
    return number.ok() ? number : field.Mismatch(kExpected);
  }
  const std::string text = *field.String();
  char* end = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &end, 10);
  const std::string_view unit = end;
  const int shift = unit == "Ki" ? 10 : unit == "Mi" ? 20 : unit == "Gi" ? 30 : -1;
  const bool fits = shift >= 0 && number >= 0 && number <= (INT64_MAX >> shift);
  if (end == text.c_str() || !fits) return field.Mismatch(kExpected);
  return number << shift;
}

// Returns the choice for a TensorFlow class, such as "mirrored" for
// "tf.distribute.MirroredStrategy"; "" if there is none.
std::string ChoiceOfClass(std::string_view text, const std::vector<std::string>& choices) {
  text.remove_prefix(text.rfind('.') + 1);  // npos + 1 is 0
  if (text.ends_with("Strategy")) text.remove_suffix(std::string_view("Strategy").size());
  std::string name;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !name.empty()) name += '_';
    name += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return std::ranges::find(choices, name) == choices.end() ? "" : name;
}

StatusOr<std::string> ReadChoice(const Key& key, const JsonField& field) {
  ASSIGN_OR_RETURN(std::string text, field.String());
  if (key.choices.empty()) return text;
  std::vector<std::string> names;
  for (const std::string& choice : key.choices) {
    if (!choice.empty()) names.push_back(choice);
    if (!choice.empty() && choice == text) return text;
  }
  std::string expected;
  for (const std::string& name : names) expected += (expected.empty() ? "one of " : ", ") + name;
  std::string nearest = ChoiceOfClass(text, names);
  if (nearest.empty()) nearest = NearestName(text, names);
  Status mismatch = field.Mismatch(expected);
  if (nearest.empty()) return mismatch;
  return InvalidArgument(Message(mismatch), "; did you mean \"", nearest, "\"?");
}

StatusOr<std::string> ReadText(const Key& key, const JsonField& field) {
  if (key.type == KeyType::kNameOrIndex && field.present() && field.value()->is_number_integer()) {
    return PrintJson(*field.value());
  }
  return ReadChoice(key, field);
}

StatusOr<int64_t> ReadInteger(const Key& key, const JsonField& field) {
  ASSIGN_OR_RETURN(int64_t value, key.type == KeyType::kBytes ? ReadBytes(field) : field.Int());
  RETURN_IF_ERROR(CheckRange(key, field, static_cast<double>(value)));
  return value;
}

StatusOr<double> ReadNumber(const Key& key, const JsonField& field) {
  ASSIGN_OR_RETURN(double value,
                   key.type == KeyType::kFraction ? ReadFraction(field) : field.Double());
  RETURN_IF_ERROR(CheckRange(key, field, value));
  return value;
}

StatusOr<std::vector<std::string>> ReadStrings(const Key& key, const JsonField& field) {
  std::vector<std::string> values;
  ASSIGN_OR_RETURN(std::vector<JsonField> elements, field.Elements());
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(std::string value, ReadChoice(key, element));
    values.push_back(std::move(value));
  }
  return values;
}

StatusOr<std::vector<double>> ReadNumbers(const Key& key, const JsonField& field) {
  std::vector<double> values;
  ASSIGN_OR_RETURN(std::vector<JsonField> elements, field.Elements());
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(double value, ReadNumber(key, element));
    values.push_back(value);
  }
  if (values.empty()) return field.Mismatch("a list of at least one number");
  return values;
}

// Assigns the value of `source` to `target`. If `source` is an error, returns it.
template <typename Target, typename Source>
Status Store(Target& target, StatusOr<Source> source) {
  if (!source.ok()) return source.status();
  target = std::move(source).value();
  return OkStatus();
}

// Reads a list of metrics. Checks only its form and the names; runtime/model checks the arguments.
StatusOr<std::shared_ptr<const Json>> ReadMetrics(const Key& key, const JsonField& field) {
  if (!field.present() || !field.value()->is_array())
    return field.Mismatch("a list of metrics, such as [accuracy]");
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  for (const JsonField& element : elements)
    RETURN_IF_ERROR(ReadChoice(key, element.IsObject() ? element["name"] : element).status());
  if (elements.empty()) return std::shared_ptr<const Json>();
  return std::make_shared<const Json>(*field.value());
}

StatusOr<std::shared_ptr<const Json>> ReadLayers(const JsonField& field) {
  if (!field.present() || !field.value()->is_array() || field.value()->empty()) {
    return field.Mismatch("a list of layers, such as [{Dense: {units: 10}}]");
  }
  return std::make_shared<const Json>(*field.value());
}

StatusOr<std::shared_ptr<const Json>> ReadModel(const JsonField& field) {
  const bool path = field.present() && field.value()->is_string() && *field.value() != "";
  if (!path && !field.IsObject())
    return field.Mismatch("the path of a file with Keras' JSON of a model, or the JSON itself");
  return std::make_shared<const Json>(*field.value());
}

StatusOr<std::shared_ptr<const Json>> ReadJson(const Key& key, const JsonField& field) {
  if (key.type == KeyType::kModel) return ReadModel(field);
  if (key.type == KeyType::kMetrics) return ReadMetrics(key, field);
  return key.type == KeyType::kOutputs ? ReadOutputs(field) : ReadLayers(field);
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

Status SetKey(TrainingConfig& config, const Key& key, const JsonField& field) {
  return std::visit(
      Overloaded{
          [&](const Ref<bool>& at) { return Store(at.mutate(config), field.Bool()); },
          [&](const Ref<int64_t>& at) { return Store(at.mutate(config), ReadInteger(key, field)); },
          [&](const Ref<double>& at) { return Store(at.mutate(config), ReadNumber(key, field)); },
          [&](const Ref<std::string>& at) {
            return Store(at.mutate(config), ReadText(key, field));
          },
          [&](const Ref<std::optional<bool>>& at) {
            return Store(at.mutate(config), field.Bool());
          },
          [&](const Ref<std::optional<int64_t>>& at) {
            return Store(at.mutate(config), ReadInteger(key, field));
          },
          [&](const Ref<std::optional<double>>& at) {
            return Store(at.mutate(config), ReadNumber(key, field));
          },
          [&](const Ref<std::vector<std::string>>& at) {
            return Store(at.mutate(config), ReadStrings(key, field));
          },
          [&](const Ref<std::vector<double>>& at) {
            return Store(at.mutate(config), ReadNumbers(key, field));
          },
          [&](const Ref<std::map<int64_t, double>>& at) {
            return Store(at.mutate(config), ReadClassWeights(field));
          },
          [&](const Ref<std::map<std::string, std::string>>& at) {
            return Store(at.mutate(config), ReadNames(field));
          },
          [&](const Ref<std::map<std::string, std::vector<double>>>& at) {
            return Store(at.mutate(config), ReadRanges(field));
          },
          [&](const Ref<Features>& at) { return Store(at.mutate(config), ReadFeatures(field)); },
          [&](const Ref<std::vector<SourceConfig>>& at) {
            return Store(at.mutate(config), ReadDatasets(field));
          },
          [&](const Ref<std::optional<TokenizeConfig>>& at) {
            return Store(at.mutate(config), ReadTokenize(field));
          },
          [&](const Ref<std::shared_ptr<const Json>>& at) {
            return Store(at.mutate(config), ReadJson(key, field));
          },
          [&](const Choice& at) -> Status {
            ASSIGN_OR_RETURN(std::string name, ReadChoice(key, field));
            const auto found = std::find(key.choices.begin(), key.choices.end(), name);
            at.set(config, static_cast<int>(found - key.choices.begin()));
            return OkStatus();
          },
      },
      key.binding);
}

Json SelectorOf(const TrainingConfig& config, const Key& key) {
  Json selector = GetKey(config, *FindKey(key.when_key));
  if (selector.is_null() && key.when_key == "optimizer.name") return "sgd";
  return selector;
}

Json GetKey(const TrainingConfig& config, const Key& key) {
  return std::visit(
      Overloaded{
          [&](const Ref<std::optional<bool>>& at) { return OrNull(at.read(config)); },
          [&](const Ref<std::optional<int64_t>>& at) { return OrNull(at.read(config)); },
          [&](const Ref<std::optional<double>>& at) { return OrNull(at.read(config)); },
          [&](const Ref<std::string>& at) {
            return at.read(config).empty() ? Json() : Json(at.read(config));
          },
          [&](const Ref<std::vector<double>>& at) {
            return at.read(config).empty() ? Json() : Json(at.read(config));
          },
          [&](const Ref<std::map<int64_t, double>>& at) {
            return at.read(config).empty() ? Json() : ClassWeightsToJson(at.read(config));
          },
          [&](const Ref<std::map<std::string, std::string>>& at) {
            return at.read(config).empty() ? Json() : NamesToJson(at.read(config));
          },
          [&](const Ref<std::map<std::string, std::vector<double>>>& at) {
            return at.read(config).empty() ? Json() : Json(at.read(config));
          },
          [&](const Ref<Features>& at) {
            return at.read(config).empty() ? Json() : FeaturesToJson(at.read(config));
          },
          [&](const Ref<std::vector<SourceConfig>>& at) {
            return at.read(config).empty() ? Json() : DatasetsToJson(at.read(config));
          },
          [&](const Ref<std::optional<TokenizeConfig>>& at) {
            return at.read(config) ? TokenizeToJson(*at.read(config)) : Json();
          },
          [&](const Ref<std::shared_ptr<const Json>>& at) {
            if (at.read(config)) return *at.read(config);
            return key.type == KeyType::kMetrics ? Json::array() : Json();
          },
          [&](const Choice& at) {
            const std::string& name = key.choices[static_cast<size_t>(at.get(config))];
            return name.empty() ? Json() : Json(name);
          },
          [&](const auto& at) { return Json(at.read(config)); },
      },
      key.binding);
}

}  // namespace tfjob::config
