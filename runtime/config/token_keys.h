// Checks the sections data.bucket_by_length and data.mask_tokens.
#pragma once

#include "runtime/config/training_config.h"

namespace tfjob::config {

// Return InvalidArgument, with the key, if keys of the section are incompatible.
Status CheckBuckets(const TrainingConfig& config);
Status CheckMasking(const DataConfig& data);

}  // namespace tfjob::config
