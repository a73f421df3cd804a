#include "operator/crd/structural.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

namespace tfjob::crd {
namespace {

using Errors = std::vector<std::string>;

const std::set<std::string> kKeywords = {"type",
                                         "format",
                                         "description",
                                         "properties",
                                         "required",
                                         "additionalProperties",
                                         "items",
                                         "enum",
                                         "default",
                                         "minimum",
                                         "maximum",
                                         "maxItems",
                                         "maxLength",
                                         "maxProperties",
                                         "pattern",
                                         "anyOf",
                                         "x-kubernetes-int-or-string",
                                         "x-kubernetes-preserve-unknown-fields",
                                         "x-kubernetes-validations"};
const std::set<std::string> kTypes = {"object", "array", "string", "integer", "number", "boolean"};
const std::set<std::string> kReasons = {"FieldValueInvalid", "FieldValueForbidden",
                                        "FieldValueRequired", "FieldValueDuplicate"};

bool Has(const Json& json, const char* key, const Json& value) {
  const auto member = json.find(key);
  return member != json.end() && *member == value;
}

bool IsIntOrString(const Json& schema) {
  return Has(schema, "x-kubernetes-int-or-string", true);
}

bool Fits(const std::string& type, const Json& value) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "boolean") return value.is_boolean();
  return value.is_number();
}

// Returns whether the schema declares every member on a path such as ".template.spec.containers".
bool IsDeclared(const Json& schema, const std::string& field_path) {
  const Json* place = &schema;
  for (size_t at = 0; at < field_path.size();) {
    const size_t end = std::min(field_path.find('.', at + 1), field_path.size());
    const std::string name = field_path.substr(at + 1, end - at - 1);
    const auto properties = place->find("properties");
    if (properties == place->end() || !properties->contains(name)) return false;
    place = &*properties->find(name);
    at = end;
  }
  return true;
}

void CheckRules(const Json& schema, const std::string& path, bool bounded, Errors& errors) {
  const auto rules = schema.find("x-kubernetes-validations");
  if (rules == schema.end()) return;
  if (!bounded) errors.push_back(path + ": rules under a list or map without a bound");
  std::set<Json> seen;
  for (const Json& rule : *rules) {
    const auto text = [&](const char* key) {
      return rule.contains(key) ? *rule.find(key)->get_ptr<const std::string*>() : std::string();
    };
    if (text("rule").empty() || text("message").empty()) errors.push_back(path + ": an empty rule");
    if (text("message").find('\n') != std::string::npos) errors.push_back(path + ": a line break");
    if (!seen.insert(*rule.find("rule")).second) errors.push_back(path + ": the same rule twice");
    if (!IsDeclared(schema, text("fieldPath"))) {
      errors.push_back(StrCat(path, ": fieldPath ", text("fieldPath"), " is not declared"));
    }
    if (rule.contains("reason") && !kReasons.contains(text("reason"))) {
      errors.push_back(StrCat(path, ": reason ", text("reason")));
    }
  }
}

void CheckValues(const Json& schema, const std::string& type, const std::string& path,
                 Errors& errors) {
  const auto words = schema.find("enum");
  for (const Json& word : words == schema.end() ? Json::array() : *words) {
    if (!Fits(type, word)) errors.push_back(path + ": a word of another type");
  }
  const auto standard = schema.find("default");
  if (standard != schema.end() && !Fits(type, *standard)) {
    errors.push_back(path + ": a default of another type");
  }
}

void Check(const Json& schema, const std::string& path, bool bounded, Errors& errors);

void CheckBelow(const Json& schema, const std::string& type, const std::string& path, bool bounded,
                Errors& errors) {
  const bool has_values = schema.contains("additionalProperties");
  if (schema.contains("properties") && has_values) {
    errors.push_back(path + ": properties exclude additionalProperties");
  }
  if ((type == "array") != schema.contains("items")) errors.push_back(path + ": items");
  if (schema.contains("properties")) {
    for (const auto& [name, member] : schema.find("properties")->items()) {
      Check(member, StrCat(path, ".", name), bounded, errors);
    }
  }
  if (has_values) {
    Check(*schema.find("additionalProperties"), path + "[]",
          bounded && schema.contains("maxProperties"), errors);
  }
  if (schema.contains("items")) {
    Check(*schema.find("items"), path + "[]", bounded && schema.contains("maxItems"), errors);
  }
}

void CheckRequired(const Json& schema, const std::string& path, Errors& errors) {
  const auto required = schema.find("required");
  for (const Json& name : required == schema.end() ? Json::array() : *required) {
    if (!schema.contains("properties") || !schema.find("properties")->contains(name)) {
      errors.push_back(StrCat(path, ": requires the unknown ", DescribeJson(name)));
    }
  }
}

void Check(const Json& schema, const std::string& path, bool bounded, Errors& errors) {
  for (const auto& [keyword, value] : schema.items()) {
    if (!kKeywords.contains(keyword)) errors.push_back(StrCat(path, ": keyword ", keyword));
  }
  CheckRules(schema, path, bounded, errors);
  if (IsIntOrString(schema)) {
    const Json either = {{{"type", "integer"}}, {{"type", "string"}}};
    if (schema.contains("type") || !Has(schema, "anyOf", either)) {
      errors.push_back(path + ": an int-or-string is anyOf integer and string");
    }
    return;
  }
  const auto type = schema.find("type");
  if (type == schema.end() || !type->is_string() || !kTypes.contains(*type)) {
    errors.push_back(path + ": a type is required");
    return;
  }
  if (schema.contains("anyOf")) errors.push_back(path + ": anyOf");
  CheckValues(schema, *type, path, errors);
  CheckRequired(schema, path, errors);
  CheckBelow(schema, *type, path, bounded, errors);
}

void Match(const Json& schema, const Json& value, const std::string& path, Errors& errors);

void MatchMembers(const Json& schema, const Json& value, const std::string& path, Errors& errors) {
  const bool open = Has(schema, "x-kubernetes-preserve-unknown-fields", true);
  const Json members = schema.value("properties", Json::object());
  for (const auto& [name, member] : value.items()) {
    const std::string member_path = StrCat(path, ".", name);
    if (member.is_null()) {
      continue;  // the server drops it
    } else if (schema.contains("additionalProperties")) {
      Match(*schema.find("additionalProperties"), member, member_path, errors);
    } else if (members.contains(name)) {
      Match(*members.find(name), member, member_path, errors);
    } else if (!open && path != ".metadata") {
      errors.push_back(member_path + ": unknown");
    }
  }
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name)) {
      errors.push_back(StrCat(path, ".", *name.get_ptr<const std::string*>(), ": required"));
    }
  }
}

void MatchBounds(const Json& schema, const Json& value, const std::string& path, Errors& errors) {
  const auto words = schema.find("enum");
  if (words != schema.end() && std::find(words->begin(), words->end(), value) == words->end()) {
    errors.push_back(StrCat(path, ": unknown word ", DescribeJson(value)));
  }
  if (schema.contains("minimum") && value < *schema.find("minimum")) {
    errors.push_back(path + ": too small");
  }
  if (schema.contains("maximum") && value > *schema.find("maximum")) {
    errors.push_back(path + ": too large");
  }
  if (value.size() > schema.value("maxProperties", value.size()) && value.is_object()) {
    errors.push_back(path + ": too many members");
  }
}

void Match(const Json& schema, const Json& value, const std::string& path, Errors& errors) {
  if (IsIntOrString(schema)) {
    const std::string text = value.is_string() ? value.get<std::string>() : PrintJson(value);
    const std::regex pattern(schema.value("pattern", ""));
    if (!std::regex_match(text, pattern)) errors.push_back(path + ": not a quantity");
    return;
  }
  const std::string type = schema.value("type", "");
  if (!Fits(type, value)) {
    errors.push_back(StrCat(path, ": expected ", type, ", got ", DescribeJson(value)));
    return;
  }
  MatchBounds(schema, value, path, errors);
  if (type == "object") MatchMembers(schema, value, path, errors);
  for (size_t i = 0; type == "array" && i < value.size(); ++i) {
    Match(*schema.find("items"), value[i], StrCat(path, "[", i, "]"), errors);
  }
}

}  // namespace

std::vector<std::string> StructuralErrors(const Json& schema) {
  Errors errors;
  Check(schema, "", true, errors);
  const Json metadata = {{"type", "object"}};
  if (!Has(schema["properties"], "metadata", metadata)) {
    errors.push_back(".metadata: only its type may be declared");
  }
  return errors;
}

std::vector<std::string> SchemaErrors(const Json& schema, const Json& object) {
  Errors errors;
  Match(schema, object, "", errors);
  return errors;
}

}  // namespace tfjob::crd
