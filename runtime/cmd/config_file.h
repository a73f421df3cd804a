// Reads a training file, applies the settings that override its keys, and fills in unset keys from
// the file's Keras model.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"

namespace tfjob::cmd {

// `settings` have the form key=value. Returns InvalidArgument if the file or a setting is wrong.
StatusOr<config::TrainingConfig> ReadConfig(const std::string& path,
                                            const std::vector<std::string>& settings);

}  // namespace tfjob::cmd
