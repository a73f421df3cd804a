#include "runtime/model/keras/keras2_settings.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/model/keras/compile_names.h"

namespace tfjob::keras {
namespace {

// Returns the name of the class without the package in which it is registered ("Custom>Adam") and
// without "Experimental", its prefix in TensorFlow 2.9 and 2.10.
std::string PlainClass(std::string name) {
  if (const size_t package = name.rfind('>'); package != std::string::npos)
    name.erase(0, package + 1);
  constexpr std::string_view kExperimental = "Experimental";
  if (name.starts_with(kExperimental)) name.erase(0, kExperimental.size());
  return name;
}

// Returns InvalidArgument if the optimizer computes something other than that of Keras 3.
Status CheckArithmetic(const JsonField& optimizer, optimizer::Kind kind, bool legacy) {
  const JsonField config = optimizer["config"];
  const auto refuse = [&](std::string_view reason) {
    return InvalidArgument(optimizer.path(), ": ", reason, ", unlike ours");
  };
  // In a compiled step, the newer Nadam multiplies its product of momentums once per variable. It
  // does not save the product either.
  if (kind == optimizer::Kind::kNadam)
    return refuse("Nadam of tf.keras 2 has a different momentum schedule");
  if (!legacy) return OkStatus();
  if (kind == optimizer::Kind::kRmsprop) {
    ASSIGN_OR_RETURN(const double momentum, config["momentum"].DoubleOr(0));
    if (momentum == 0) {
      return refuse(
          "RMSprop of tf.keras.optimizers.legacy without momentum adds epsilon to the "
          "root, not to the mean square");
    }
  }
  if (kind == optimizer::Kind::kAdagrad) {
    ASSIGN_OR_RETURN(const double initial, config["initial_accumulator_value"].DoubleOr(0.1));
    ASSIGN_OR_RETURN(const double epsilon, config["epsilon"].DoubleOr(1e-7));
    // In float32, a smaller epsilon has no effect on either formula.
    if (epsilon > 2e-6 * initial) {
      return refuse(
          "Adagrad of tf.keras.optimizers.legacy adds epsilon to the root, not to the "
          "accumulator");
    }
  }
  return OkStatus();
}

// Converts the legacy setting `decay`: the rate of step s is learning_rate / (1 + decay s).
Status ConvertDecay(const JsonField& optimizer, Json& config) {
  ASSIGN_OR_RETURN(const double decay, optimizer["config"]["decay"].DoubleOr(0));
  config.erase("decay");
  if (decay == 0) return OkStatus();
  if (config.contains("learning_rate") && config["learning_rate"].is_object()) {
    return InvalidArgument(optimizer.path(), ".config.decay: ", decay, " together with a schedule ",
                           "is not supported");
  }
  Json schedule = {{"decay_steps", 1}, {"decay_rate", decay}, {"staircase", false}};
  if (config.contains("learning_rate")) schedule["initial_learning_rate"] = config["learning_rate"];
  config["learning_rate"] = {{"class_name", "InverseTimeDecay"}, {"config", std::move(schedule)}};
  return OkStatus();
}

}  // namespace

bool IsKeras2(const StatusOr<std::string>& version) {
  return version.ok() && version->starts_with("2.");
}

StatusOr<Json> OptimizerOfKeras2(const JsonField& optimizer) {
  if (optimizer.value()->is_string()) {
    // Only versions with the newer optimizers write a name alone.
    ASSIGN_OR_RETURN(const std::string name, optimizer.String());
    ASSIGN_OR_RETURN(const optimizer::Kind named, optimizer::ParseKind(name));
    RETURN_IF_ERROR(CheckArithmetic(optimizer, named, /*legacy=*/false));
    return *optimizer.value();
  }
  ASSIGN_OR_RETURN(const std::string written, optimizer["class_name"].String());
  const std::string class_name = PlainClass(written);
  ASSIGN_OR_RETURN(const optimizer::Kind kind, optimizer::ParseKind(class_name));
  ASSIGN_OR_RETURN(const auto members, optimizer["config"].Members());
  Json config = Json::object();
  for (const auto& [name, value] : members) {
    if (value.present()) config[name == "lr" ? "learning_rate" : name] = *value.value();
  }
  ASSIGN_OR_RETURN(const bool legacy, optimizer["config"]["is_legacy_optimizer"].BoolOr(true));
  RETURN_IF_ERROR(CheckArithmetic(optimizer, kind, legacy));
  if (legacy) RETURN_IF_ERROR(ConvertDecay(optimizer, config));
  config.erase("is_legacy_optimizer");
  config.erase("jit_compile");
  return Json{{"class_name", class_name}, {"config", std::move(config)}};
}

// A metric that compile() received as the name of a function is written as a MeanMetricWrapper of
// this function.
StatusOr<Json> MetricsOfKeras2(const JsonField& metrics) {
  if (!metrics.present()) return Json(nullptr);
  if (metrics.value()->is_array()) {
    Json list = Json::array();
    for (size_t i = 0; i < metrics.value()->size(); ++i) {
      ASSIGN_OR_RETURN(Json metric, MetricsOfKeras2(metrics[i]));
      list.push_back(std::move(metric));
    }
    return list;
  }
  if (!metrics.IsObject()) return *metrics.value();
  if (!metrics["class_name"].present()) {
    Json map = Json::object();
    ASSIGN_OR_RETURN(const auto members, metrics.Members());
    for (const auto& [name, value] : members) {
      ASSIGN_OR_RETURN(map[name], MetricsOfKeras2(value));
    }
    return map;
  }
  Json converted = *metrics.value();
  if (converted["class_name"] != "MeanMetricWrapper") return converted;
  ASSIGN_OR_RETURN(const std::string function, metrics["config"]["fn"].String());
  // This name may mean the metric or the loss, which differ in sign; a class is unambiguous.
  if (function == "cosine_similarity")
    return Json{{"class_name", "function"}, {"config", function}};
  converted["class_name"] = ClassName(TrainingName(function), true);
  return converted;
}

}  // namespace tfjob::keras
