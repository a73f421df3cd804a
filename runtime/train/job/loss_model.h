// Reads the models of custom losses and metrics.
#pragma once

#include <memory>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/model/model.h"

namespace tfjob::train {

// Returns whether the loss is computed by a model (loss.name: custom).
bool IsCustom(const config::LossConfig& loss);

// Reads the model of a custom loss. Returns InvalidArgument, with a message that names the key, if
// there is no model, or if it cannot compute a loss (model::CheckLossModel).
StatusOr<std::shared_ptr<const model::Model>> ReadLossModel(const config::LossConfig& loss);

// Reads the model of a custom metric from `field`, the metric's argument `model`: the path of a
// file, or the content of such a file. The errors are like those of ReadLossModel.
StatusOr<std::shared_ptr<const model::Model>> ReadMetricModel(const JsonField& field);

}  // namespace tfjob::train
