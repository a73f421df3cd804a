#include "runtime/model/keras/compile_names.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/model/keras.h"

namespace tfjob::keras {
namespace {

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

// Lists Keras' abbreviations, in lower case.
constexpr std::pair<std::string_view, std::string_view> kAbbreviations[] = {
    {"acc", "accuracy"},
    {"bce", "binary_crossentropy"},
    {"kld", "kl_divergence"},
    {"mae", "mean_absolute_error"},
    {"mse", "mean_squared_error"},
    {"mape", "mean_absolute_percentage_error"},
    {"msle", "mean_squared_logarithmic_error"},
};

// Describes a class whose name is not simply the training file's name in camel case.
struct Irregular {
  std::string_view class_name;
  std::string_view name;
  bool loss, metric;
};
constexpr Irregular kIrregular[] = {{"KLDivergence", "kl_divergence", true, true},
                                    {"CTC", "ctc", true, false},
                                    {"LogCoshError", "log_cosh", false, true},
                                    {"AUC", "auc", false, true},
                                    {"FBetaScore", "fbeta_score", false, true},
                                    {"IoU", "io_u", false, true},
                                    {"BinaryIoU", "binary_io_u", false, true},
                                    {"MeanIoU", "mean_io_u", false, true},
                                    {"OneHotIoU", "one_hot_io_u", false, true},
                                    {"OneHotMeanIoU", "one_hot_mean_io_u", false, true}};

std::string InCamelCase(std::string_view name) {
  std::string camel;
  bool begins = true;
  for (const char c : name) {
    if (c != '_')
      camel += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return camel;
}

}  // namespace

std::string TrainingName(std::string_view written) {
  for (const auto& [abbreviation, name] : kAbbreviations) {
    if (InLowerCase(written) == abbreviation) return std::string(name);
  }
  for (const Irregular& irregular : kIrregular) {
    if (irregular.class_name == written) return std::string(irregular.name);
  }
  const bool is_class = std::ranges::any_of(written, [](char c) { return c >= 'A' && c <= 'Z'; });
  return is_class ? model::SnakeCase(written) : std::string(written);
}

std::string OptimizerName(optimizer::Kind kind) {
  return InLowerCase(optimizer::Name(kind));
}

std::string ClassName(std::string_view name, bool metric) {
  for (const Irregular& irregular : kIrregular) {
    if (irregular.name == name && (metric ? irregular.metric : irregular.loss))
      return std::string(irregular.class_name);
  }
  return InCamelCase(name);
}

void DropDefaults(Json& keys) {
  static const Json kDefaults = {{"threshold", 0.5},
                                 {"k", 5},
                                 {"num_thresholds", 200},
                                 {"curve", "ROC"},
                                 {"summation_method", "interpolation"},
                                 {"multi_label", false},
                                 {"class_aggregation", "uniform_average"},
                                 {"num_regressors", 0},
                                 {"beta", 1},
                                 {"sparse_y_true", true},
                                 {"label_smoothing", 0}};
  // As in Keras, the thresholds of AUC determine their number.
  if (keys["name"] == "auc" && keys.contains("thresholds")) keys.erase("num_thresholds");
  Json defaults = kDefaults;
  const std::string metric = keys["name"];
  defaults["sparse_y_pred"] = !metric.starts_with("one_hot");
  if (metric == "f1_score" || metric == "fbeta_score") defaults.erase("threshold");
  if (metric == "binary_io_u") defaults["target_class_ids"] = {0, 1};
  for (const auto& [name, value] : defaults.items()) {
    if (keys.contains(name) && keys[name] == value) keys.erase(name);
  }
}

}  // namespace tfjob::keras
