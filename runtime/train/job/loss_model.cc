#include "runtime/train/job/loss_model.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/model/custom_loss.h"
#include "runtime/model/keras.h"

namespace tfjob::train {
namespace {

constexpr char kKey[] = "loss.model";

StatusOr<model::Model> ReadFrom(const Json& json, const std::string& key) {
  if (!json.is_string()) return model::ReadKerasJson(PrintJson(json), key);
  const auto path = json.get<std::string>();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return model::ReadKerasJson(text, path);
}

StatusOr<std::shared_ptr<const model::Model>> ReadChecked(const Json& json,
                                                          const std::string& key) {
  ASSIGN_OR_RETURN(model::Model read, ReadFrom(json, key));
  RETURN_IF_ERROR(Annotate(model::CheckLossModel(read), key));
  return std::make_shared<const model::Model>(std::move(read));
}

}  // namespace

bool IsCustom(const config::LossConfig& loss) {
  return loss.name == "custom";
}

StatusOr<std::shared_ptr<const model::Model>> ReadLossModel(const config::LossConfig& loss) {
  if (loss.model == nullptr) {
    return InvalidArgument(kKey, ": expected the model that computes the loss, as a path or as ",
                           "Keras' JSON, but it is missing");
  }
  return ReadChecked(*loss.model, kKey);
}

StatusOr<std::shared_ptr<const model::Model>> ReadMetricModel(const JsonField& field) {
  if (!field.present()) {
    return InvalidArgument(field.path(), ": expected the model that computes the values of the ",
                           "metric, as a path or as Keras' JSON, but it is missing");
  }
  return ReadChecked(*field.value(), field.path());
}

}  // namespace tfjob::train
