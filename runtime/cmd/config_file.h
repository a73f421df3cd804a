// Reads a training file, overrides keys with settings, and fills the remaining unset keys from the
// Keras model that the file names.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"

namespace tfjob::cmd {

// Each setting has the form key=value. Returns InvalidArgument if the file or a setting is invalid.
StatusOr<config::TrainingConfig> ReadConfig(const std::string& path,
                                            const std::vector<std::string>& settings);
// Returns the config with data.train.cache unset, including in its datasets. For uses that need
// only the shapes of the data, since making a cache reads all examples.
config::TrainingConfig WithoutCaches(config::TrainingConfig config);

}  // namespace tfjob::cmd
