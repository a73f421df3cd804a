// Checks data.bucket_by_length, data.mask_tokens and data.augment.
#pragma once

#include "runtime/config/training_config.h"

namespace tfjob::config {

// Return InvalidArgument, with a message that names the key, if keys are incompatible.
Status CheckBuckets(const TrainingConfig& config);
Status CheckMasking(const DataConfig& data);
Status CheckAugment(const DataConfig& data);

}  // namespace tfjob::config
