#include "runtime/config/training_config.h"

#include <nlohmann/json.hpp>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/yaml.h"
#include "runtime/config/keys.h"

namespace tfjob::config {
namespace {

std::string Join(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : StrCat(section, ".", name);
}

bool IsSection(std::string_view path) {
  const std::string prefix = StrCat(path, ".");
  for (const Key& key : Keys()) {
    if (key.path.compare(0, prefix.size(), prefix) == 0) return true;
  }
  return false;
}

// Returns the names allowed in a section.
std::vector<std::string> NamesIn(std::string_view section) {
  const std::string prefix = section.empty() ? "" : StrCat(section, ".");
  std::vector<std::string> names;
  for (const Key& key : Keys()) {
    if (key.path.compare(0, prefix.size(), prefix) != 0) continue;
    std::string name =
        key.path.substr(prefix.size(), key.path.find('.', prefix.size()) - prefix.size());
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

// Returns a key of the same name in another section, or "". For example, "mode" at the top level is
// a misplaced "strategy.mode".
std::string SameNameElsewhere(std::string_view name) {
  const std::string suffix = StrCat(".", name);
  for (const Key& key : Keys()) {
    const size_t size = key.path.size();
    if (size > suffix.size() && key.path.compare(size - suffix.size(), suffix.size(), suffix) == 0)
      return key.path;
  }
  return "";
}

Status UnknownKey(std::string_view section, std::string_view name) {
  const std::vector<std::string> names = NamesIn(section);
  const std::string path = Join(section, name);
  const std::string elsewhere = SameNameElsewhere(name);
  if (!elsewhere.empty())
    return InvalidArgument(path, ": unknown key; did you mean \"", elsewhere, "\"?");
  return InvalidArgument(path, ": unknown key", DidYouMean(name, names));
}

// Reads the section or key at `path` and everything below it.
Status Read(TrainingConfig& config, const std::string& path, const JsonField& field) {
  if (!field.present()) return OkStatus();
  if (const Key* key = FindKey(path); key != nullptr) return SetKey(config, *key, field);
  if (HasShortForm(path) && field.value()->is_string())
    return SetKey(config, *FindKey(path + ".name"), field);
  if (!field.value()->is_object()) {
    return field.Mismatch(HasShortForm(path) ? "a name, or a map of keys" : "a map of keys");
  }
  ASSIGN_OR_RETURN(auto members, field.Members());
  for (const auto& [name, member] : members) {
    const std::string below = Join(path, name);
    if (FindKey(below) == nullptr && !IsSection(below)) return UnknownKey(path, name);
    RETURN_IF_ERROR(Read(config, below, member));
  }
  return OkStatus();
}

void Place(Json& document, const std::string& path, Json value) {
  Json* at = &document;
  size_t begin = 0;
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    at = &(*at)[path.substr(begin, dot - begin)];
    begin = dot + 1;
  }
  (*at)[path.substr(begin)] = std::move(value);
}

// Returns whether the key has an effect. A key has none if it belongs to a format, loss, optimizer
// or schedule other than the configured one.
bool Applies(const TrainingConfig& config, const Key& key) {
  if (key.when_key.empty()) return true;
  const Json selector = GetKey(config, *FindKey(key.when_key));
  for (const std::string& value : key.when_values) {
    if (selector == value) return true;
  }
  return false;
}

}  // namespace

StatusOr<TrainingConfig> ParseTrainingConfig(std::string_view text, std::string_view what) {
  ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYaml(text, what));
  if (documents.size() != 1) {
    return InvalidArgument(what, ": expected one YAML document, got ", documents.size());
  }
  TrainingConfig config;
  Status read = Read(config, "", JsonField(documents[0]));
  if (!read.ok()) return Annotate(read, what);
  return config;
}

Status Override(TrainingConfig& config, std::string_view path, std::string_view value) {
  const std::string name(path);
  if (FindKey(name) == nullptr && !IsSection(name)) {
    const size_t dot = name.rfind('.');
    const std::string section = dot == std::string::npos ? "" : name.substr(0, dot);
    return UnknownKey(section, dot == std::string::npos ? name : name.substr(dot + 1));
  }
  ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYaml(value, name));
  if (documents.size() != 1 || documents[0].is_null())
    return InvalidArgument(name, ": expected a value, got nothing");
  TrainingConfig changed = config;
  RETURN_IF_ERROR(Read(changed, name, JsonField(documents[0], name)));
  config = std::move(changed);
  return OkStatus();
}

Json TrainingConfigToJson(const TrainingConfig& config) {
  Json document = Json::object();
  for (const Key& key : Keys()) {
    Json value = GetKey(config, key);
    if (!value.is_null() && Applies(config, key)) Place(document, key.path, std::move(value));
  }
  if (!config.data.eval.present()) document["data"].erase("eval");
  if (!config.data.train.present()) document["data"].erase("train");
  return document;
}

std::string PrintTrainingConfig(const TrainingConfig& config) {
  return PrintYaml(TrainingConfigToJson(config));
}

}  // namespace tfjob::config
