// Ensures that a label means the same class in all folders of images or text files of a job.
#pragma once

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/train/job/batch_columns.h"

namespace tfjob::train {

// Compares the classes of the first such folder of data.train (for kEval, of data.eval) with those
// of all other such folders, including those in nested `datasets`. For kEval, first assigns the
// classes that a folder of data.train lists to every folder of data.eval that lists none. If no
// folder of data.train lists classes, compares the first folder of data.train with each folder of
// data.eval that lists none. If the first folder of a comparison does not exist, skips the
// comparison, because a task that only evaluates might not have the folders of data.train. Returns
// InvalidArgument, with a message that names both datasets, if the classes differ.
Status AgreeOnClasses(config::TrainingConfig& config, Split split);

}  // namespace tfjob::train
