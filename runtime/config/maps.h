// Converts the values of keys that are maps with arbitrary names, such as class_weight, from and to
// JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::config {

// Read the values of these types of keys (see KeyType in keys.h). Errors are InvalidArgument and
// name the path.
StatusOr<std::map<int64_t, double>> ReadClassWeights(const JsonField& field);
StatusOr<std::map<std::string, std::string>> ReadNames(const JsonField& field);
StatusOr<std::map<std::string, std::vector<double>>> ReadRanges(const JsonField& field);

Json ClassWeightsToJson(const std::map<int64_t, double>& weights);
Json NamesToJson(const std::map<std::string, std::string>& names);

}  // namespace tfjob::config
