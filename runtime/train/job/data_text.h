// Describes a task's data as text, for tfjob-trainer --print=data.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"

namespace tfjob::train {

// Returns the locations of the training data and the evaluation data, their numbers of examples,
// and the steps that form this task's batches (data::Pipeline::Describe). If the task does not
// train, describes only the data that it evaluates. Reads, generates or opens the data. Returns
// errors from LoadDataset, DefineModel, TrainingPipeline and strategy::Select.
StatusOr<std::string> DescribeData(const config::TrainingConfig& config,
                                   const cluster::TfConfig& tf_config);

}  // namespace tfjob::train
