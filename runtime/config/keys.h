// Defines the keys of the training file as one table. The parser, printer, overrides, JSON Schema
// and documentation are derived from this table, so they cannot disagree.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/config/training_config.h"

namespace tfjob::config {

// Accesses a key's value in a TrainingConfig.
template <typename T>
struct Ref {
  T& (*mutate)(TrainingConfig&);
  const T& (*read)(const TrainingConfig&);
};
// Accesses an enum in a TrainingConfig. Its values are indices into Key::choices.
struct Choice {
  void (*set)(TrainingConfig&, int);
  int (*get)(const TrainingConfig&);
};
using Binding =
    std::variant<Ref<bool>, Ref<int64_t>, Ref<double>, Ref<std::string>, Ref<std::optional<bool>>,
                 Ref<std::optional<int64_t>>, Ref<std::optional<double>>,
                 Ref<std::vector<std::string>>, Ref<std::vector<double>>,
                 Ref<std::map<int64_t, double>>, Ref<std::map<std::string, std::string>>,
                 Ref<std::map<std::string, std::vector<double>>>,
                 Ref<std::map<std::string, FeatureConfig>>, Ref<std::vector<SourceConfig>>,
                 Ref<std::optional<TokenizeConfig>>, Ref<std::shared_ptr<const Json>>, Choice>;

// How the file represents a value:
//   kNameOrIndex  a string, or an integer (kept as a string)
//   kFraction     a number, or "1/255"
//   kBytes        an integer, or "32Mi" (Ki, Mi, Gi)
//   kClassWeights a map from class numbers to numbers
//   kNames        a map from names to names, or one name, which is stored as {"": NAME}
//   kRanges       a map from names to [low, high]
//   kFeatures     a map from names to features (FeatureConfig)
//   kDatasets     a list of maps with the keys of data.train
//   kTokenize     a map of keys (TokenizeConfig)
//   kModel        the path of a file with Keras' JSON of a model, or the JSON itself
//   kMetrics      a list of names, or of maps with a name and arguments
//   kOutputs      a map from names to maps of the keys that are per_output
enum class KeyType {
  kBool,
  kInteger,
  kNumber,
  kFraction,
  kBytes,
  kString,
  kNameOrIndex,
  kChoice,
  kStrings,
  kNumbers,
  kClassWeights,
  kNames,
  kRanges,
  kFeatures,
  kDatasets,
  kTokenize,
  kLayers,
  kModel,
  kMetrics,
  kOutputs
};

struct Key {
  std::string path;  // "strategy.mode"
  KeyType type;
  Binding binding;
  std::string doc;  // one or two sentences for docs/training-file.md
  // The values allowed for a string, or for each element of kStrings. If empty, any value is
  // allowed. A choice "" stands for an unset value and cannot be written in the file.
  std::vector<std::string> choices = {};
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  // If not empty, this key applies only if the key that `when_key` names has one of the values
  // `when_values`.
  std::string when_key = {};
  std::vector<std::string> when_values = {};
  std::string unset_doc = {};  // describes the meaning of an unset key, such as "required"
  // If true, the key may also be set for a single output of the model, as in
  // `outputs.NAME.loss.from_logits`.
  bool per_output = false;
};

// Returns all keys, in the order of the documentation.
const std::vector<Key>& Keys();

// Returns the key with this path, or null if there is no such key.
const Key* FindKey(std::string_view path);

// Returns whether the section may be written as a plain string that sets its key "name", as loss,
// optimizer and strategy may.
bool HasShortForm(std::string_view section);

// ReadOutputs checks the keys of the `outputs` section and returns the section. ReadOutput reads
// the keys of one output into `config`. Both return InvalidArgument, with the path of the key, if a
// key or its value is invalid.
StatusOr<std::shared_ptr<const Json>> ReadOutputs(const JsonField& field);
Status ReadOutput(TrainingConfig& config, const JsonField& field);

// Convert a list of datasets from and to JSON. Each dataset has the same keys as data.train.
StatusOr<std::vector<SourceConfig>> ReadDatasets(const JsonField& field);
Json DatasetsToJson(const std::vector<SourceConfig>& datasets);

// Checks the type, choice and range of the field's value, and stores the value in the config.
// Returns InvalidArgument if a check fails.
Status SetKey(TrainingConfig& config, const Key& key, const JsonField& field);

// Returns the value of the key named by `key.when_key`, which must not be empty. Returns null if
// that key is unset. An optimizer without a name counts as sgd.
Json SelectorOf(const TrainingConfig& config, const Key& key);

// Returns the key's value as the file represents it, or null if it is unset.
Json GetKey(const TrainingConfig& config, const Key& key);

}  // namespace tfjob::config
