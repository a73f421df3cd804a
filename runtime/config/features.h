// Converts the `features` key of TFRecord files and JSON lines from and to JSON, and generates its
// JSON Schema.
#pragma once

#include <map>
#include <string>

#include "runtime/config/training_config.h"

namespace tfjob::config {

using Features = std::map<std::string, FeatureConfig>;

// Reads the features and checks each of them, including the rules that involve several of its keys.
// Errors are InvalidArgument and name the path.
StatusOr<Features> ReadFeatures(const JsonField& field);
Json FeaturesToJson(const Features& features);
// Returns the JSON Schema of the `features` key.
Json FeaturesSchema();

}  // namespace tfjob::config
