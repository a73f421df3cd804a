// Names the metrics of a model's outputs. Private to this package.
#pragma once

#include <vector>

#include "runtime/model/build.h"

namespace tfjob::model {

struct NamedMetric {
  size_t output = 0;
  bool weighted = false;  // whether it is one of the output's weighted_metrics
  MetricFetch fetch;
};

// Returns whether the output has any metrics.
bool IsMeasured(const Objective& objective);

// Returns the unweighted losses of the outputs, or an empty list if there is only one output.
std::vector<MetricFetch> LossesOfOutputs(const Model& model, const BuildOptions& options);

// Returns the metrics of all outputs, followed by the weighted metrics of all outputs. Their names
// are unique, and different from the names of losses. See MetricsOf for the names.
std::vector<NamedMetric> NamedMetricsOf(const Model& model, const BuildOptions& options);

}  // namespace tfjob::model
