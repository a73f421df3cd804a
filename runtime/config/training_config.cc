#include "runtime/config/training_config.h"

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/yaml.h"
#include "runtime/config/keys.h"

namespace tfjob::config {
namespace {

std::string Join(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : StrCat(section, ".", name);
}

// The keys that a part of the file may contain.
enum class Scope {
  kFile,
  kOutput,   // outputs.NAME: only the keys that are per_output
  kDataset,  // an element of datasets: only the keys of data.train
};

constexpr char kTrainPrefix[] = "data.train.";

bool InScope(const Key& key, Scope scope) {
  if (scope == Scope::kDataset) return key.path.starts_with(kTrainPrefix);
  return scope == Scope::kFile || key.per_output;
}

const Key* FindKeyIn(Scope scope, std::string_view path) {
  const Key* key = FindKey(path);
  return key != nullptr && InScope(*key, scope) ? key : nullptr;
}

bool IsSection(Scope scope, std::string_view path) {
  const std::string prefix = StrCat(path, ".");
  for (const Key& key : Keys()) {
    if (InScope(key, scope) && key.path.compare(0, prefix.size(), prefix) == 0) return true;
  }
  return false;
}

// Returns the names allowed in a section.
std::vector<std::string> NamesIn(Scope scope, std::string_view section) {
  const std::string prefix = section.empty() ? "" : StrCat(section, ".");
  std::vector<std::string> names;
  for (const Key& key : Keys()) {
    if (!InScope(key, scope) || key.path.compare(0, prefix.size(), prefix) != 0) continue;
    std::string name =
        key.path.substr(prefix.size(), key.path.find('.', prefix.size()) - prefix.size());
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

// Returns a key of the same name in another section, or "" if there is none. For example, "mode" at
// the top level is a misplaced "strategy.mode".
std::string SameNameElsewhere(std::string_view name) {
  const std::string suffix = StrCat(".", name);
  for (const Key& key : Keys()) {
    const size_t size = key.path.size();
    if (size > suffix.size() && key.path.compare(size - suffix.size(), suffix.size(), suffix) == 0)
      return key.path;
  }
  return "";
}

// Returns the error for an unknown key. `at` is the path of the section in the file.
Status UnknownKey(Scope scope, std::string_view section, std::string_view name,
                  std::string_view at) {
  const std::vector<std::string> names = NamesIn(scope, section);
  const std::string path = Join(at, name);
  const std::string elsewhere = scope == Scope::kFile ? SameNameElsewhere(name) : "";
  if (!elsewhere.empty())
    return InvalidArgument(path, ": unknown key; did you mean \"", elsewhere, "\"?");
  return InvalidArgument(path, ": unknown key", DidYouMean(name, names));
}

// Reads the section or key at `path` and everything below it.
Status Read(TrainingConfig& config, Scope scope, const std::string& path, const JsonField& field) {
  if (!field.present()) return OkStatus();
  if (const Key* key = FindKeyIn(scope, path); key != nullptr) return SetKey(config, *key, field);
  if (HasShortForm(path) && field.value()->is_string())
    return SetKey(config, *FindKey(path + ".name"), field);
  if (!field.value()->is_object()) {
    return field.Mismatch(HasShortForm(path) ? "a name, or a map of keys" : "a map of keys");
  }
  ASSIGN_OR_RETURN(auto members, field.Members());
  for (const auto& [name, member] : members) {
    const std::string below = Join(path, name);
    if (FindKeyIn(scope, below) == nullptr && !IsSection(scope, below))
      return UnknownKey(scope, path, name, field.path());
    RETURN_IF_ERROR(Read(config, scope, below, member));
  }
  return OkStatus();
}

// Returns the value of `outputs` after --set outputs.NAME.KEY=VALUE, that is, the value in `config`
// with this key replaced. `path` is NAME.KEY.
StatusOr<Json> WithOutputKey(const TrainingConfig& config, std::string_view path, Json value) {
  Json outputs = config.outputs ? *config.outputs : Json::object();
  Json* at = &outputs;
  while (true) {
    const size_t dot = path.find('.');
    if (at->is_string()) *at = {{"name", *at}};  // a short form
    if (!at->is_null() && !at->is_object()) return InvalidArgument("outputs: no map at ", path);
    at = &(*at)[std::string(path.substr(0, dot))];
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  *at = std::move(value);
  return outputs;
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

// Returns whether the key has an effect. It has none if it belongs to a format, loss, optimizer or
// schedule other than the configured one.
bool Applies(const TrainingConfig& config, const Key& key) {
  if (key.when_key.empty()) return true;
  const Json selector = SelectorOf(config, key);
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
  Status read = Read(config, Scope::kFile, "", JsonField(documents[0]));
  if (!read.ok()) return Annotate(read, what);
  return config;
}

Status ReadOutput(TrainingConfig& config, const JsonField& field) {
  return Read(config, Scope::kOutput, "", field);
}

StatusOr<std::vector<SourceConfig>> ReadDatasets(const JsonField& field) {
  constexpr size_t kMostLevels = 8;
  constexpr std::string_view kExpected =
      "a list of datasets, such as [{format: csv, file: a.csv}, {format: csv, file: b.csv}]";
  if (!field.present() || !field.value()->is_array()) return field.Mismatch(kExpected);
  if (field.value()->empty())
    return InvalidArgument(field.path(), ": expected at least one dataset, got an empty list");
  size_t levels = 0;
  const std::string& path = field.path();
  for (size_t at = path.find("datasets"); at != std::string::npos;
       at = path.find("datasets", at + 1))
    ++levels;
  if (levels > kMostLevels) {
    return InvalidArgument("data: expected at most ", kMostLevels,
                           " levels of datasets in datasets, got more");
  }
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  std::vector<SourceConfig> datasets;
  for (const JsonField& element : elements) {
    if (!element.IsObject()) return field.Mismatch(kExpected);
    TrainingConfig read;
    RETURN_IF_ERROR(Read(read, Scope::kDataset, "data.train", element));
    datasets.push_back(std::move(read.data.train));
  }
  return datasets;
}

Json DatasetsToJson(const std::vector<SourceConfig>& datasets) {
  Json list = Json::array();
  for (const SourceConfig& dataset : datasets) {
    TrainingConfig config;
    config.data.train = dataset;
    Json keys = Json::object();
    for (const Key& key : Keys()) {
      if (!InScope(key, Scope::kDataset) || !Applies(config, key)) continue;
      Json value = GetKey(config, key);
      if (!value.is_null())
        Place(keys, key.path.substr(sizeof(kTrainPrefix) - 1), std::move(value));
    }
    list.push_back(std::move(keys));
  }
  return list;
}

StatusOr<std::shared_ptr<const Json>> ReadOutputs(const JsonField& field) {
  if (!field.IsObject() || field.value()->empty())
    return field.Mismatch("a map of outputs, such as {NAME: {loss: mean_squared_error}}");
  ASSIGN_OR_RETURN(const auto members, field.Members());
  for (const auto& [name, member] : members) {
    TrainingConfig checked;
    RETURN_IF_ERROR(ReadOutput(checked, member));
  }
  return std::make_shared<const Json>(*field.value());
}

Status Override(TrainingConfig& config, std::string_view path, std::string_view value) {
  constexpr std::string_view kOutputs = "outputs";
  const std::string name(path);
  const bool of_output = path.starts_with(StrCat(kOutputs, "."));
  if (!of_output && FindKey(name) == nullptr && !IsSection(Scope::kFile, name)) {
    const size_t dot = name.rfind('.');
    const std::string section = dot == std::string::npos ? "" : name.substr(0, dot);
    return UnknownKey(Scope::kFile, section, dot == std::string::npos ? name : name.substr(dot + 1),
                      section);
  }
  ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYaml(value, name));
  if (documents.size() != 1 || documents[0].is_null())
    return InvalidArgument(name, ": expected a value, got nothing");
  TrainingConfig changed = config;
  if (of_output) {
    ASSIGN_OR_RETURN(const Json outputs, WithOutputKey(config, path.substr(kOutputs.size() + 1),
                                                       std::move(documents[0])));
    RETURN_IF_ERROR(
        Read(changed, Scope::kFile, std::string(kOutputs), JsonField(outputs, "outputs")));
  } else {
    RETURN_IF_ERROR(Read(changed, Scope::kFile, name, JsonField(documents[0], name)));
  }
  config = std::move(changed);
  return OkStatus();
}

Status SetOpenKeys(TrainingConfig& config, const Json& keys) {
  const TrainingConfig defaults;
  TrainingConfig given, changed = config;
  RETURN_IF_ERROR(Read(given, Scope::kFile, "", JsonField(keys)));
  for (const Key& key : Keys()) {
    const Json value = GetKey(given, key);
    const Json otherwise = GetKey(defaults, key);
    if (value == otherwise || GetKey(config, key) != otherwise) continue;
    RETURN_IF_ERROR(SetKey(changed, key, JsonField(value, key.path)));
  }
  config = std::move(changed);
  return OkStatus();
}

std::vector<std::string> NamedOutputs(const TrainingConfig& config) {
  std::vector<std::string> names;
  if (config.outputs == nullptr) return names;
  for (const auto& [name, keys] : config.outputs->items()) names.push_back(name);
  return names;
}

TrainingConfig ForOutput(const TrainingConfig& config, const std::string& name) {
  TrainingConfig own = config;
  own.outputs = nullptr;
  if (config.outputs == nullptr) return own;
  const JsonField keys = JsonField(*config.outputs)[name];
  if (keys["loss"].present()) own.loss = {};  // replaces the whole `loss` section
  const Status read = ReadOutput(own, keys);
  ENFORCE(read.ok(), "the keys of outputs are checked where they are set");
  return own;
}

Json TrainingConfigToJson(const TrainingConfig& config) {
  Json document = Json::object();
  for (const Key& key : Keys()) {
    Json value = GetKey(config, key);
    // Print the effective batch_size, because its default depends on another key.
    if (key.path == "batch_size" && !config.global_batch_size) value = BatchSize(config, 0, 1);
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
