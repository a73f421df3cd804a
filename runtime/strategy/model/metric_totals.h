// Sums the loss and the metrics of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tfjob::strategy {

// Stores sums over examples instead of means, so that the mean over any number of batches is exact.
struct MetricTotals {
  double loss_sum = 0;
  std::vector<double> metric_sums;  // of all metrics, in the order of model::MetricsOf
  int64_t examples = 0;

  void Add(const MetricTotals& more) {
    loss_sum += more.loss_sum;
    examples += more.examples;
    if (metric_sums.size() < more.metric_sums.size()) metric_sums.resize(more.metric_sums.size());
    for (size_t i = 0; i < more.metric_sums.size(); ++i) metric_sums[i] += more.metric_sums[i];
  }

  double loss() const { return examples == 0 ? 0 : loss_sum / static_cast<double>(examples); }
};

}  // namespace tfjob::strategy
