// Reads a training file, overrides keys with settings, and then uses the Keras model that the file
// names to set keys that are still unset.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"

namespace tfjob::cmd {

// Each setting has the form key=value. Returns InvalidArgument if the file or a setting is invalid.
StatusOr<config::TrainingConfig> ReadConfig(const std::string& path,
                                            const std::vector<std::string>& settings);
// Returns the config with data.train.cache unset, including in its datasets. Use it if only the
// shapes of the data are needed, because creating a cache reads all examples.
config::TrainingConfig WithoutCaches(config::TrainingConfig config);

}  // namespace tfjob::cmd
