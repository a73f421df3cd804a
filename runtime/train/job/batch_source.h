// Applies the keys of `data` that concern the batches of a job rather than a single dataset.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/data/source.h"
#include "runtime/model/model.h"
#include "runtime/train/job/batch_columns.h"

namespace tfjob::train {

// Applies data.bucket_by_length, data.mask_tokens and data.augment to the examples of data.train or
// data.eval. Reads all examples once if there are buckets. Returns `source` itself if none of the
// keys is set. Returns InvalidArgument, with the key, if the model or the data are incompatible
// with these keys. Also returns errors from data::BucketByLength, data::MaskTokens and
// augment::Augment.
StatusOr<std::shared_ptr<const data::Source>> BatchSource(
    const config::TrainingConfig& config, Split split, const model::Model& model,
    std::shared_ptr<const data::Source> source);

// Returns InvalidArgument if the layers of data.augment are invalid, or if the model has several
// inputs or an input that is not float32. Does not read any data, because that may take a long
// time.
Status CheckAugment(const config::TrainingConfig& config, const model::Model& model);
// Applies only data.augment, which may change the shape of the model's input.
StatusOr<std::shared_ptr<const data::Source>> AugmentedSource(
    const config::TrainingConfig& config, Split split, const model::Model& model,
    std::shared_ptr<const data::Source> source);

}  // namespace tfjob::train
