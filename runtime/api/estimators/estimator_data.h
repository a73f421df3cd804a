// Defines the contents of an Estimator. Private to this package.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/access.h"
#include "runtime/api/estimator.h"

namespace tfjob::api {

struct EstimatorData {
  Model model;
  CompileOptions options;
  RunConfig config;       // model_dir is set
  tfjob::Status invalid;  // the error in the arguments, or OK
};

// Returns an estimator on which every method that can fail returns `error`.
Estimator InvalidEstimator(const RunConfig& config, tfjob::Status error);

// Calls an input function. Error messages refer to the function as `name`.
StatusOr<InputBatches> CallInput(const InputFunction& input_fn, const char* name,
                                 const InputContext& context);

// Returns the metrics and, as "global_step", the step at which they were computed.
Metrics WithStep(std::vector<std::pair<std::string, double>> values, int64_t step);

}  // namespace tfjob::api
