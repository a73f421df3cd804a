// Makes the folders of images and texts of a job number their classes in the same way, so that a
// label means the same class in all of them.
#pragma once

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/train/batch_columns.h"

namespace tfjob::train {

// Compares the folders of data.train, or those of data.eval, which may be among `datasets`, with
// each other. For kEval, also sets the classes of the folders that do not list them to those that a
// folder of data.train lists or, if none does, compares them with those that it has. A folder that
// does not exist is not compared: a task that only evaluates may not have those of data.train.
// Returns InvalidArgument, with a message that names both datasets, if the classes differ.
Status AgreeOnClasses(config::TrainingConfig& config, Split split);

}  // namespace tfjob::train
