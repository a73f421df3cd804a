// Names the metrics of a model's outputs. Private to this package.
#pragma once

#include <vector>

#include "runtime/model/build.h"

namespace tfjob::model {

struct NamedMetric {
  size_t output = 0;
  bool weighted = false;  // is among the output's weighted_metrics
  MetricFetch fetch;
};

// Returns whether the output has any metrics.
bool IsMeasured(const Objective& objective);

// Returns the losses of the outputs before weighting, or none if there is only one output.
std::vector<MetricFetch> LossesOfOutputs(const Model& model, const BuildOptions& options);

// Returns the metrics of all outputs, then the weighted metrics of all outputs. No two have the
// same name, and none has the name of a loss. See MetricsOf for the names.
std::vector<NamedMetric> NamedMetricsOf(const Model& model, const BuildOptions& options);

}  // namespace tfjob::model
