// Converts the values of keys that are maps with arbitrary names.
#include "runtime/config/maps.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tfjob::config {

StatusOr<std::map<int64_t, double>> ReadClassWeights(const JsonField& field) {
  constexpr std::string_view kExpected = "a map of class numbers to weights, such as {0: 1, 1: 5}";
  if (!field.IsObject()) return field.Mismatch(kExpected);
  ASSIGN_OR_RETURN(const auto members, field.Members());
  std::map<int64_t, double> weights;
  for (const auto& [name, member] : members) {
    int64_t label = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), label);
    if (error != std::errc() || end != name.data() + name.size() || label < 0)
      return InvalidArgument(member.path(), ": expected a class number of at least 0");
    ASSIGN_OR_RETURN(const double weight, member.Double());
    if (!std::isfinite(weight) || weight < 0)
      return member.Mismatch("a finite weight of at least 0");
    weights[label] = weight;
  }
  return weights;
}

StatusOr<std::map<std::string, std::string>> ReadNames(const JsonField& field) {
  constexpr std::string_view kExpected =
      "the name of an array, or a map of names to arrays (write \"y\" in quotes, because YAML "
      "reads "
      "y as true)";
  std::map<std::string, std::string> names;
  if (field.present() && field.value()->is_string()) {
    ASSIGN_OR_RETURN(names[""], field.String());
    return names;
  }
  if (!field.IsObject()) return field.Mismatch(kExpected);
  ASSIGN_OR_RETURN(const auto members, field.Members());
  for (const auto& [name, member] : members) {
    if (name.empty()) return InvalidArgument(field.path(), ": expected names that are not empty");
    const StatusOr<std::string> array = member.String();
    if (!array.ok() || array->empty()) return member.Mismatch(kExpected);
    names[name] = *array;
  }
  return names;
}

StatusOr<std::map<std::string, std::vector<double>>> ReadRanges(const JsonField& field) {
  constexpr std::string_view kExpected =
      "two finite numbers [low, high], of which low is not above high";
  if (!field.IsObject()) return field.Mismatch("a map of names to ranges [low, high]");
  ASSIGN_OR_RETURN(const auto members, field.Members());
  std::map<std::string, std::vector<double>> ranges;
  for (const auto& [name, member] : members) {
    ASSIGN_OR_RETURN(const std::vector<JsonField> ends, member.Elements());
    std::vector<double>& range = ranges[name];
    for (const JsonField& end : ends) {
      ASSIGN_OR_RETURN(const double number, end.Double());
      range.push_back(number);
    }
    if (range.size() != 2 || !std::isfinite(range[0]) || !std::isfinite(range[1]) ||
        range[0] > range[1])
      return member.Mismatch(kExpected);
  }
  return ranges;
}

Json ClassWeightsToJson(const std::map<int64_t, double>& weights) {
  Json json = Json::object();
  for (const auto& [label, weight] : weights) json[StrCat(label)] = weight;
  return json;
}

Json NamesToJson(const std::map<std::string, std::string>& names) {
  if (names.size() == 1 && names.begin()->first.empty()) return names.begin()->second;
  return Json(names);
}

}  // namespace tfjob::config
