#include "runtime/model/keras/compile_config.h"

#include <nlohmann/json.hpp>

#include "runtime/model/keras.h"
#include "runtime/model/keras/compile_names.h"
#include "runtime/model/keras/keras2_settings.h"
#include "runtime/model/metrics/metric.h"

namespace tfjob::keras {
namespace {

// Represents a Keras object in compile_config: the name of a function, or a class with arguments.
struct CompiledObject {
  std::string name;     // in the training file: "mean_squared_error"
  std::string written;  // in the file: "MeanSquaredError", "mse"
  JsonField arguments;  // absent for a function
  bool is_class = false;
};

StatusOr<CompiledObject> ReadObject(const JsonField& field) {
  if (!field.present() || !field.value()->is_string()) {
    ASSIGN_OR_RETURN(const std::string class_name, field["class_name"].String());
    if (class_name != "function")
      return CompiledObject{TrainingName(class_name), class_name, field["config"], true};
    ASSIGN_OR_RETURN(const std::string function, field["config"].String());
    return CompiledObject{TrainingName(function), function, field["no arguments"]};
  }
  ASSIGN_OR_RETURN(const std::string name, field.String());
  return CompiledObject{TrainingName(name), name, field["no arguments"]};
}

// Returns whether the object is a loss that sums over the axes of its argument `axis`, and over all
// axes without it.
bool SumsOverAxes(const CompiledObject& object) {
  return object.name == "dice" || object.name == "tversky";
}

// Returns whether the argument can be ignored because this program always behaves in this way. The
// intersections over unions (io_u) count in integers.
bool IsImplied(const CompiledObject& object, const std::string& name, const Json& value) {
  if (value.is_null() || name == "name" || name == "fn") return true;
  if (name == "dtype" && object.name.ends_with("io_u"))
    return value == "int64" || value == "int32" || value == "int";
  if (name == "dtype") {
    const StatusOr<std::string> policy = JsonField(value)["config"]["name"].String();
    return value == "float32" || (policy.ok() && *policy == "float32");
  }
  return (name == "axis" && value == -1 && !SumsOverAxes(object)) ||
         (name == "reduction" && value == "auto");
}

// Removes `from_logits: false` from a metric, unless the metric would then inherit `true` from the
// loss.
void DropLogits(const Json& loss, Json& metric) {
  const bool taken = loss.contains("from_logits") && loss["from_logits"] == true &&
                     metric["name"].get_ref<const std::string&>().ends_with("crossentropy");
  if (!taken && metric.contains("from_logits") && metric["from_logits"] == false)
    metric.erase("from_logits");
}

// Adds the arguments of an object to `keys`, except for arguments that IsImplied accepts.
Status AddArguments(const CompiledObject& object, Json& keys) {
  ASSIGN_OR_RETURN(const auto arguments, object.arguments.Members());
  for (const auto& [name, value] : arguments) {
    if (name == "reduction" && !value.present())
      return value.Mismatch("sum_over_batch_size or sum");
    if (value.present() && !IsImplied(object, name, *value.value())) keys[name] = *value.value();
  }
  return OkStatus();
}

StatusOr<Json> LossKeys(const JsonField& field) {
  ASSIGN_OR_RETURN(const CompiledObject loss, ReadObject(field));
  RETURN_IF_ERROR(Annotate(model::ParseLoss(loss.name).status(), field.path()));
  Json keys = {{"name", loss.name}};
  RETURN_IF_ERROR(AddArguments(loss, keys));
  // Both names have the same meaning.
  if (keys.contains("reduction") && keys["reduction"] == "mean")
    keys["reduction"] = "sum_over_batch_size";
  if (SumsOverAxes(loss) && keys.contains("axis") && keys["axis"].is_number())
    keys["axis"] = Json::array({keys["axis"]});
  return keys;
}

// Returns the name under which Keras reports the metric (compile_utils.py, get_metric): the name of
// the metric object, or the string that was passed to compile().
StatusOr<std::string> NameInKeras(const CompiledObject& metric) {
  if (!metric.is_class) return metric.written;
  const JsonField name = metric.arguments["name"];
  return name.present() ? name.String() : metric.name;
}

StatusOr<Json> MetricKeys(const JsonField& field, const Json& loss) {
  ASSIGN_OR_RETURN(const CompiledObject metric, ReadObject(field));
  if (metric.written == "Accuracy") {
    return InvalidArgument(field.path(), ": the class Accuracy compares outputs with labels, and ",
                           "is not supported; name metrics in the training file");
  }
  RETURN_IF_ERROR(Annotate(model::ParseMetric(metric.name).status(), field.path()));
  // Reject the function cosine_similarity. The file contains its name without the module, so it may
  // be either keras.losses.cosine_similarity, which is negative, or
  // keras.metrics.cosine_similarity, which is positive.
  if (metric.name == "cosine_similarity" && field["class_name"].present()) {
    const auto class_name = field["class_name"].String();
    if (class_name.ok() && *class_name == "function") {
      return InvalidArgument(field.path(), ": the file does not say whether the function ",
                             "cosine_similarity is that of keras.losses or of keras.metrics, ",
                             "which differ in sign; name metrics in the training file");
    }
  }
  Json keys = {{"name", metric.name}};
  RETURN_IF_ERROR(AddArguments(metric, keys));
  DropDefaults(keys);
  DropLogits(loss, keys);
  ASSIGN_OR_RETURN(std::string seen_as, NameInKeras(metric));
  if (seen_as != metric.name) keys["as"] = std::move(seen_as);
  if (keys.size() == 1) return keys["name"];
  return keys;
}

StatusOr<Json> ListOfMetrics(const JsonField& field, const Json& loss) {
  Json list = Json::array();
  if (!field.present()) return list;
  if (!field.value()->is_array()) {
    ASSIGN_OR_RETURN(Json metric, MetricKeys(field, loss));
    list.push_back(std::move(metric));
    return list;
  }
  ASSIGN_OR_RETURN(const auto elements, field.Elements());
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(Json metric, MetricKeys(element, loss));
    list.push_back(std::move(metric));
  }
  return list;
}

bool IsObjectOfKeras(const JsonField& field) {
  return field.present() && (field.value()->is_string() || field["class_name"].present());
}

// Returns the part of a setting that applies to one output. A setting is a map with the names of
// the outputs as keys, a list in the order of the outputs, or a single value for all outputs.
StatusOr<JsonField> PartOf(const JsonField& setting, std::span<const std::string> outputs,
                           size_t output) {
  if (!setting.present() || IsObjectOfKeras(setting)) return setting;
  if (setting.value()->is_object()) return setting[outputs[output]];
  if (!setting.value()->is_array()) return setting;
  if (setting.value()->size() != outputs.size())
    return setting.Mismatch(StrCat("one element per output (", outputs.size(), ")"));
  return setting[output];
}

// Like PartOf, but if the model has only one output, also accepts a plain list of metrics.
StatusOr<JsonField> MetricsOfOutput(const JsonField& metrics, std::span<const std::string> outputs,
                                    size_t output) {
  const bool list = metrics.present() && metrics.value()->is_array();
  const bool plain = list && (metrics.value()->empty() || !metrics[size_t{0}].present() ||
                              !metrics[size_t{0}].value()->is_array());
  if (plain && (outputs.size() == 1 || metrics.value()->empty())) return metrics;
  return PartOf(metrics, outputs, output);
}

StatusOr<Json> KeysOfOutput(const JsonField& compiled, std::span<const std::string> outputs,
                            size_t output) {
  ASSIGN_OR_RETURN(const JsonField loss, PartOf(compiled["loss"], outputs, output));
  Json keys = Json::object();
  ASSIGN_OR_RETURN(keys["loss"], LossKeys(loss));
  ASSIGN_OR_RETURN(const JsonField weight, PartOf(compiled["loss_weights"], outputs, output));
  if (weight.present()) {
    ASSIGN_OR_RETURN(keys["loss_weight"], weight.Double());
  }
  for (const char* key : {"metrics", "weighted_metrics"}) {
    ASSIGN_OR_RETURN(const JsonField part, MetricsOfOutput(compiled[key], outputs, output));
    ASSIGN_OR_RETURN(Json metrics, ListOfMetrics(part, keys["loss"]));
    if (!metrics.empty()) keys[key] = std::move(metrics);
  }
  return keys;
}

StatusOr<Json> ScheduleKeys(const JsonField& schedule, Json& optimizer) {
  ASSIGN_OR_RETURN(const std::string class_name, schedule["class_name"].String());
  Json keys = {{"name", model::SnakeCase(class_name)}};
  ASSIGN_OR_RETURN(const auto arguments, schedule["config"].Members());
  for (const auto& [name, value] : arguments) {
    if (name == "name" || !value.present()) continue;
    (name == "initial_learning_rate" ? optimizer["learning_rate"] : keys[name]) = *value.value();
  }
  return keys;
}

// Returns the optimizer inside a LossScaleOptimizer, and any other optimizer unchanged. The loss of
// a model that computes in float16 is always scaled (runtime/state/loss_scale.h). For other models,
// a scale makes no difference.
StatusOr<JsonField> WithoutLossScale(const JsonField& optimizer) {
  if (!optimizer.IsObject()) return optimizer;
  const StatusOr<std::string> class_name = optimizer["class_name"].String();
  if (!class_name.ok() || !class_name->starts_with("LossScaleOptimizer")) return optimizer;
  const JsonField config = optimizer["config"];
  ASSIGN_OR_RETURN(const bool dynamic, config["dynamic"].BoolOr(true));
  if (!dynamic) return config["dynamic"].Mismatch("true");
  ASSIGN_OR_RETURN(const double scale, config["initial_scale"].DoubleOr(kInitialLossScale));
  if (scale != kInitialLossScale)
    return config["initial_scale"].Mismatch(StrCat(kInitialLossScale, ", the default"));
  ASSIGN_OR_RETURN(const int64_t steps,
                   config["dynamic_growth_steps"].IntOr(kLossScaleGrowthSteps));
  if (steps != kLossScaleGrowthSteps)
    return config["dynamic_growth_steps"].Mismatch(StrCat(kLossScaleGrowthSteps, ", the default"));
  return config["inner_optimizer"];
}

}  // namespace

StatusOr<Json> OptimizerKeys(const Json& compile_config) {
  ASSIGN_OR_RETURN(const JsonField field,
                   WithoutLossScale(JsonField(compile_config, "compile_config")["optimizer"]));
  if (IsKeras2(JsonField(compile_config)["keras_version"].String()) && field.present()) {
    Json converted = Json::object();
    ASSIGN_OR_RETURN(converted["optimizer"], OptimizerOfKeras2(field));
    return OptimizerKeys(converted);
  }
  if (field.present() && field.value()->is_string()) {
    ASSIGN_OR_RETURN(const std::string name, field.String());
    ASSIGN_OR_RETURN(const optimizer::Kind named, optimizer::ParseKind(name));
    return Json{{"name", OptimizerName(named)}};
  }
  ASSIGN_OR_RETURN(const std::string class_name, field["class_name"].String());
  ASSIGN_OR_RETURN(const optimizer::Kind kind, optimizer::ParseKind(class_name));
  Json keys = {{"name", OptimizerName(kind)}};
  ASSIGN_OR_RETURN(const auto arguments, field["config"].Members());
  for (const auto& [name, value] : arguments) {
    if (name == "name" || !value.present()) continue;
    if (name == "learning_rate" && value.IsObject()) {
      ASSIGN_OR_RETURN(keys["learning_rate_schedule"], ScheduleKeys(value, keys));
    } else {
      keys[name] = *value.value();
    }
  }
  // Keras always writes the averaging options. Drop them if they have no effect.
  ASSIGN_OR_RETURN(const bool averages, field["config"]["use_ema"].BoolOr(false));
  if (!averages) {
    keys.erase("use_ema");
    keys.erase("ema_momentum");
    keys.erase("ema_overwrite_frequency");
  }
  return keys;
}

StatusOr<Json> ObjectiveKeys(const Json& compile_config, std::span<const std::string> outputs) {
  const JsonField compiled(compile_config, "compile_config");
  if (IsKeras2(compiled["keras_version"].String())) {
    Json converted = compile_config;
    converted.erase("keras_version");
    for (const char* key : {"metrics", "weighted_metrics"}) {
      ASSIGN_OR_RETURN(converted[key], MetricsOfKeras2(compiled[key]));
    }
    return ObjectiveKeys(converted, outputs);
  }
  if (outputs.size() == 1) return KeysOfOutput(compiled, outputs, 0);
  Json keys = Json::object();
  for (size_t i = 0; i < outputs.size(); ++i) {
    ASSIGN_OR_RETURN(keys[outputs[i]], KeysOfOutput(compiled, outputs, i));
  }
  return Json{{"outputs", std::move(keys)}};
}

}  // namespace tfjob::keras
