// The keys of the training file, as one table: parser, printer, overrides, JSON Schema and
// documentation are made from it, so that they cannot disagree.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/config/training_config.h"

namespace tfjob::config {

// Where a key's value lives in the TrainingConfig.
template <typename T>
struct Ref {
  T& (*mutate)(TrainingConfig&);
  const T& (*read)(const TrainingConfig&);
};
// An enumeration; its numbers index Key::choices.
struct Choice {
  void (*set)(TrainingConfig&, int);
  int (*get)(const TrainingConfig&);
};
using Binding = std::variant<Ref<bool>, Ref<int64_t>, Ref<double>, Ref<std::string>,
                             Ref<std::optional<bool>>, Ref<std::optional<int64_t>>,
                             Ref<std::optional<double>>, Ref<std::vector<std::string>>,
                             Ref<std::vector<double>>, Ref<std::shared_ptr<const Json>>, Choice>;

// How the file writes a value. kNameOrIndex: a string, or an integer (kept as text). kFraction: a
// number, or "1/255". kBytes: an integer, or "32Mi" (Ki, Mi, Gi).
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
  kLayers
};

struct Key {
  std::string path;  // "strategy.mode"
  KeyType type;
  Binding binding;
  std::string doc;  // one or two sentences for docs/training-file.md
  // What a string (or each element of kStrings) may be; empty: anything. An empty name cannot be
  // written.
  std::vector<std::string> choices = {};
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  // The key means something only when that other key has one of these values.
  std::string when_key = {};
  std::vector<std::string> when_values = {};
  std::string unset_doc = {};  // the default in words, when it is not a value
};

// Sorted as the documentation shows them.
const std::vector<Key>& Keys();

// Null when there is none.
const Key* FindKey(std::string_view path);

// Sections whose value may be a plain string, which is then their key "name": loss, optimizer,
// strategy.
bool HasShortForm(std::string_view section);

// Writes the field's value into the config, after checking type, choices and range.
Status SetKey(TrainingConfig& config, const Key& key, const JsonField& field);

// The value as the file writes it; null when unset.
Json GetKey(const TrainingConfig& config, const Key& key);

}  // namespace tfjob::config
