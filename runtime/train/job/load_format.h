// Loads or opens the examples of one format, without operators.
#pragma once

#include <memory>

#include "runtime/data/source.h"
#include "runtime/model/model.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/job/named_sources.h"

namespace tfjob::train {

// Loads data.train or data.eval, which must not consist of other datasets. Errors name the key or
// the file.
StatusOr<std::shared_ptr<const data::Source>> LoadFormat(const config::TrainingConfig& config,
                                                         Split split, const model::Model& model,
                                                         Extent extent);

}  // namespace tfjob::train
