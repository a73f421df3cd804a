// Implements the functions of compile_config.h that create Keras' settings.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/model/keras/compile_config.h"
#include "runtime/model/keras/compile_names.h"

namespace tfjob::keras {
namespace {

Json Serialized(const char* module, std::string class_name, Json config) {
  return {{"module", module},
          {"class_name", std::move(class_name)},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

Json SerializedSchedule(const Json& keys, double initial_rate) {
  Json config = keys;
  config.erase("name");
  const bool piecewise = keys["name"] == "piecewise_constant_decay";
  if (!piecewise) config["initial_learning_rate"] = initial_rate;
  return Serialized("keras.optimizers.schedules",
                    ClassName(keys["name"].get_ref<const std::string&>(), /*metric=*/false),
                    std::move(config));
}

Json SerializedOptimizer(const Json& keys, const optimizer::Optimizer& optimizer) {
  Json config = keys;
  for (const char* ours : {"name", "learning_rate_schedule", "exclude_from_weight_decay", "lazy"})
    config.erase(ours);
  config["learning_rate"] = optimizer.learning_rate;
  if (optimizer.schedule.decay != optimizer::Decay::kNone) {
    config["learning_rate"] =
        SerializedSchedule(keys["learning_rate_schedule"], optimizer.learning_rate);
  }
  return Serialized("keras.optimizers", std::string(optimizer::Name(optimizer.kind)),
                    std::move(config));
}

Json SerializedLossScale(Json inner) {
  return Serialized("keras.optimizers", "LossScaleOptimizer",
                    {{"inner_optimizer", std::move(inner)},
                     {"initial_scale", kInitialLossScale},
                     {"dynamic_growth_steps", kLossScaleGrowthSteps},
                     {"name", "loss_scale_optimizer"}});
}

Json SerializedLoss(const Json& keys) {
  Json config = keys;
  config.erase("name");
  if (config.contains("axis")) config["axis"] = config["axis"].get<std::vector<int64_t>>();
  return Serialized("keras.losses",
                    ClassName(keys["name"].get_ref<const std::string&>(), /*metric=*/false),
                    std::move(config));
}

bool IsLossOfLogits(const Json& loss) {
  return loss.contains("from_logits") && loss["from_logits"] == true;
}

// Returns whether the metric is a cross-entropy; such metrics inherit from_logits from the loss.
bool TakesLogits(const std::string& name) {
  return name.ends_with("crossentropy") && name != "clipped_crossentropy";
}

Json SerializedMetric(const Json& metric, const Json& loss) {
  Json config = metric.is_object() ? metric : Json::object();
  const std::string name =
      metric.is_object() ? metric["name"].get<std::string>() : metric.get<std::string>();
  const std::string seen_as = config.value("as", name);
  if (name == "accuracy") return seen_as == "acc" ? seen_as : name;
  config.erase("as");
  config["name"] = seen_as;
  for (const char* number : {"beta", "threshold"}) {  // F-scores accept no integers
    if (config.contains(number)) config[number] = config[number].get<double>();
  }
  if (TakesLogits(name) && IsLossOfLogits(loss) && !config.contains("from_logits"))
    config["from_logits"] = true;
  return Serialized("keras.metrics", ClassName(name, /*metric=*/true), std::move(config));
}

// Returns whether Keras has this metric. Keras cannot load a file with an unknown metric.
bool IsMetricOfKeras(const Json& metric) {
  constexpr std::string_view kOnlyHere[] = {"perplexity",
                                            "clipped_crossentropy",
                                            "huber",
                                            "binary_focal_crossentropy",
                                            "categorical_focal_crossentropy",
                                            "categorical_generalized_cross_entropy",
                                            "custom"};
  const Json& name = metric.is_object() ? metric["name"] : metric;
  return std::ranges::find(kOnlyHere, name.get_ref<const std::string&>()) == std::end(kOnlyHere);
}

// Converts the metrics in `keys` to Keras' form. `key` is "metrics" or "weighted_metrics".
Json SerializedMetrics(const Json& keys, const char* key) {
  Json list = Json::array();
  if (!keys.contains(key)) return list;
  for (const Json& metric : keys[key]) {
    if (IsMetricOfKeras(metric)) list.push_back(SerializedMetric(metric, keys["loss"]));
  }
  return list;
}

}  // namespace

std::optional<Json> MakeCompileConfig(std::span<const Json> keys,
                                      const optimizer::Optimizer& optimizer, bool scales_loss) {
  Json losses = Json::array(), weights = Json::array();
  Json metrics = Json::array(), weighted = Json::array();
  for (const Json& own : keys) {
    const Json& loss = own["loss"]["name"];
    if (loss == "clipped_crossentropy" || loss == "custom") return std::nullopt;
    losses.push_back(SerializedLoss(own["loss"]));
    weights.push_back(own["loss_weight"]);
    metrics.push_back(SerializedMetrics(own, "metrics"));
    weighted.push_back(SerializedMetrics(own, "weighted_metrics"));
  }
  const auto one_or_all = [&](Json& list) { return keys.size() == 1 ? list[0] : list; };
  Json serialized = SerializedOptimizer(keys[0]["optimizer"], optimizer);
  if (scales_loss) serialized = SerializedLossScale(std::move(serialized));
  Json config = {{"optimizer", std::move(serialized)},
                 {"loss", one_or_all(losses)},
                 {"loss_weights", one_or_all(weights)},
                 {"metrics", one_or_all(metrics)},
                 {"weighted_metrics", one_or_all(weighted)}};
  return std::optional<Json>(std::move(config));
}

Json OlderCompileConfig(const Json& compile_config) {
  Json older = compile_config;
  older["optimizer_config"] = {{"class_name", older["optimizer"]["class_name"]},
                               {"config", older["optimizer"]["config"]}};
  older.erase("optimizer");
  return older;
}

}  // namespace tfjob::keras
