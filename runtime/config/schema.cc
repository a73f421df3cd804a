#include "runtime/config/schema.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/config/features.h"
#include "runtime/config/keys.h"
#include "runtime/config/tokenize.h"

namespace tfjob::config {
namespace {

constexpr char kFraction[] = R"(^[-+]?[0-9.]+([eE][-+]?[0-9]+)?/[-+]?[0-9.]+([eE][-+]?[0-9]+)?$)";
constexpr char kBytes[] = "^[0-9]+(Ki|Mi|Gi)$";

std::vector<std::string> Writable(const Key& key) {
  std::vector<std::string> names;
  for (const std::string& choice : key.choices) {
    if (!choice.empty()) names.push_back(choice);
  }
  return names;
}

void AddRange(Json& schema, const Key& key) {
  if (std::isfinite(key.minimum)) schema["minimum"] = key.minimum;
  if (std::isfinite(key.maximum)) schema["maximum"] = key.maximum;
}

// Returns the schema of a list of datasets, each of which has the keys of data.train.
Json DatasetsSchema() {
  return {{"type", "array"},
          {"items", {{"$ref", "#/properties/data/properties/train"}}},
          {"minItems", 1}};
}

// Returns the schema of the whole file or, if `per_output` is set, of the keys of one output.
Json KeysSchema(bool per_output);

// Returns the schema of a string. If the key has choices, the string must be one of them.
Json TextSchema(const Key& key) {
  const std::vector<std::string> names = Writable(key);
  Json text = {{"type", "string"}};
  if (!names.empty()) text["enum"] = names;
  return text;
}

// `text` is the schema of a name.
Json MetricsSchema(const Json& text) {
  const Json with_arguments = {
      {"type", "object"}, {"required", {"name"}}, {"properties", {{"name", text}}}};
  return {{"type", "array"}, {"items", {{"anyOf", Json::array({text, with_arguments})}}}};
}

Json TypeSchema(const Key& key) {
  const Json text = TextSchema(key);
  Json number = {{"type", "number"}};
  Json integer = {{"type", "integer"}};
  AddRange(number, key);
  AddRange(integer, key);
  switch (key.type) {
    case KeyType::kBool:
      return {{"type", "boolean"}};
    case KeyType::kInteger:
      return integer;
    case KeyType::kNumber:
      return number;
    case KeyType::kFraction:
      return {{"anyOf", Json::array({number, {{"type", "string"}, {"pattern", kFraction}}})}};
    case KeyType::kBytes:
      return {{"anyOf", Json::array({integer, {{"type", "string"}, {"pattern", kBytes}}})}};
    case KeyType::kNameOrIndex:
      return {{"type", Json::array({"string", "integer"})}};
    case KeyType::kString:
    case KeyType::kChoice:
      return text;
    case KeyType::kStrings:
      return {{"type", "array"}, {"items", text}};
    case KeyType::kNumbers:
      return {{"type", "array"}, {"items", number}, {"minItems", 1}};
    case KeyType::kClassWeights:
      return {{"type", "object"},
              {"patternProperties", {{"^[0-9]+$", {{"type", "number"}, {"minimum", 0}}}}},
              {"additionalProperties", false}};
    case KeyType::kNames: {
      Json array = {{"type", "string"}, {"minLength", 1}};
      return {
          {"anyOf", Json::array({array, {{"type", "object"}, {"additionalProperties", array}}})}};
    }
    case KeyType::kRanges:
      return {
          {"type", "object"},
          {"additionalProperties",
           {{"type", "array"}, {"items", {{"type", "number"}}}, {"minItems", 2}, {"maxItems", 2}}}};
    case KeyType::kFeatures:
      return FeaturesSchema();
    case KeyType::kDatasets:
      return DatasetsSchema();
    case KeyType::kTokenize:
      return TokenizeSchema();
    case KeyType::kLayers:
      return {{"type", "array"}, {"items", {{"type", {"object", "string"}}}}, {"minItems", 1}};
    case KeyType::kModel:
      return {{"type", {"string", "object"}}};
    case KeyType::kMetrics:
      return MetricsSchema(text);
    case KeyType::kOutputs:
      return {{"type", "object"},
              {"additionalProperties", KeysSchema(/*per_output=*/true)},
              {"minProperties", 1}};
  }
  return {};
}

Json Section() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

std::string TypeName(const Key& key) {
  switch (key.type) {
    case KeyType::kBool:
      return "true or false";
    case KeyType::kInteger:
      return "integer";
    case KeyType::kNumber:
      return "number";
    case KeyType::kFraction:
      return "number or fraction";
    case KeyType::kBytes:
      return "bytes (`32Mi`)";
    case KeyType::kNameOrIndex:
      return "name or index";
    case KeyType::kNumbers:
      return "list of numbers";
    case KeyType::kClassWeights:
      return "map of class numbers to numbers";
    case KeyType::kNames:
      return "name, or map of names to names";
    case KeyType::kRanges:
      return "map of names to [low, high]";
    case KeyType::kFeatures:
      return "map of names to features";
    case KeyType::kDatasets:
      return "list of maps of keys";
    case KeyType::kTokenize:
      return "map of keys";
    case KeyType::kLayers:
      return "list of layers";
    case KeyType::kModel:
      return "path, or Keras' JSON";
    case KeyType::kOutputs:
      return "map of names to keys";
    case KeyType::kString:
    case KeyType::kChoice:
    case KeyType::kStrings:
    case KeyType::kMetrics:
      break;
  }
  std::string names;
  for (const std::string& name : Writable(key)) names += (names.empty() ? "`" : ", `") + name + "`";
  if (key.type == KeyType::kMetrics) return "list of names, or of maps with arguments: " + names;
  if (key.type == KeyType::kStrings) return names.empty() ? "list of strings" : "list of " + names;
  return names.empty() ? "string" : names;
}

std::string DefaultText(const Key& key) {
  if (!key.unset_doc.empty()) return key.unset_doc;
  const Json value = GetKey(TrainingConfig(), key);
  if (value.is_null()) return "–";
  if (key.type == KeyType::kBytes) return StrCat("`", value.get<int64_t>() >> 20, "Mi`");
  return StrCat("`", value.is_string() ? value.get<std::string>() : PrintJson(value), "`");
}

std::string Meaning(const Key& key) {
  if (key.when_key.empty()) return key.doc;
  std::string names;
  for (const std::string& name : key.when_values)
    names += (names.empty() ? "`" : ", `") + name + "`";
  return StrCat(key.doc, " Only with ", names, ".");
}

Json KeysSchema(bool per_output) {
  Json schema = Section();
  for (const Key& key : Keys()) {
    if (per_output && !key.per_output) continue;
    Json* at = &schema;
    size_t begin = 0;
    for (size_t dot = key.path.find('.'); dot != std::string::npos;
         dot = key.path.find('.', begin)) {
      Json& section = (*at)["properties"][key.path.substr(begin, dot - begin)];
      if (section.is_null()) section = Section();
      at = &section;
      begin = dot + 1;
    }
    Json value = TypeSchema(key);
    value["description"] = Meaning(key);
    const Json otherwise = GetKey(TrainingConfig(), key);
    if (!otherwise.is_null() && key.unset_doc.empty() && !per_output) value["default"] = otherwise;
    (*at)["properties"][key.path.substr(begin)] = std::move(value);
  }
  for (auto& [name, section] : schema["properties"].items()) {
    if (!HasShortForm(name)) continue;
    section = {{"anyOf", Json::array({section["properties"]["name"], section})}};
  }
  return schema;
}

}  // namespace

Json TrainingSchema() {
  Json schema = KeysSchema(/*per_output=*/false);
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Training file of tfjob-trainer";
  schema["required"] = {"model", "data"};
  schema["anyOf"] = Json::array({{{"required", {"loss"}}}, {{"required", {"outputs"}}}});
  return schema;
}

std::string KeyTable() {
  std::string table = "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const Key& key : Keys()) {
    table += StrCat("| `", key.path, "` | ", TypeName(key), " | ", DefaultText(key), " | ",
                    Meaning(key), " |\n");
  }
  return table;
}

StatusOr<std::string> WithKeyTable(std::string_view markdown) {
  constexpr std::string_view kBegin = "<!-- keys: begin -->\n";
  constexpr std::string_view kEnd = "<!-- keys: end -->";
  const size_t begin = markdown.find(kBegin);
  const size_t end = markdown.find(kEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return InvalidArgument(
        "expected the lines \"<!-- keys: begin -->\" and \"<!-- keys: end -->\"");
  }
  return StrCat(markdown.substr(0, begin + kBegin.size()), KeyTable(), markdown.substr(end));
}

}  // namespace tfjob::config
