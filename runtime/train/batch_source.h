// Applies the keys of `data` that concern the batches of a job, rather than one of its datasets.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/data/source.h"
#include "runtime/model/model.h"
#include "runtime/train/batch_columns.h"

namespace tfjob::train {

// Applies data.bucket_by_length and data.mask_tokens to the examples of data.train or data.eval.
// Reads all examples once if there are buckets. Returns `source` itself if neither is set. Returns
// InvalidArgument, with the key, if the model or the data are incompatible with these keys.
// Propagates errors from data::BucketByLength and data::MaskTokens.
StatusOr<std::shared_ptr<const data::Source>> BatchSource(
    const config::TrainingConfig& config, Split split, const model::Model& model,
    std::shared_ptr<const data::Source> source);

}  // namespace tfjob::train
