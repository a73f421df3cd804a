#include "runtime/strategy/model/device_totals.h"

#include <algorithm>
#include <span>
#include <string>

#include "runtime/model/build.h"

namespace tfjob::strategy {
namespace {

size_t CountOf(const variables::Variable& variable) {
  return static_cast<size_t>(variable.shape().num_elements());
}

}  // namespace

StatusOr<DeviceTotals> DeviceTotals::Find(const ModelDefinition& definition,
                                          const variables::VariableStore& store) {
  std::vector<std::string> fetches{model::kLossSum};
  for (const model::MetricFetch& metric : model::MetricsOf(definition.model, definition.build))
    fetches.push_back(metric.fetch);
  DeviceTotals totals;
  size_t most = 0;
  for (const std::string& fetch : fetches) {
    ASSIGN_OR_RETURN(variables::Variable * variable, store.Get(model::TotalName(fetch)));
    most = std::max(most, CountOf(*variable));
    totals.variables_.push_back(variable);
  }
  totals.values_.resize(most);
  return totals;
}

Status DeviceTotals::Take(MetricTotals& totals) {
  size_t at = 0;  // among the metrics' sums
  for (variables::Variable* variable : variables_) {
    const std::span<double> values = std::span(values_).first(CountOf(*variable));
    RETURN_IF_ERROR(variable->CopyOut(std::as_writable_bytes(values)));
    if (variable == variables_.front()) {
      totals.loss_sum += values[0];
      continue;
    }
    for (const double value : values) {
      if (at == totals.metric_sums.size()) totals.metric_sums.push_back(0);
      totals.metric_sums[at++] += value;
    }
  }
  return Clear();
}

Status DeviceTotals::Clear() {
  std::ranges::fill(values_, 0.0);
  for (variables::Variable* variable : variables_)
    RETURN_IF_ERROR(variable->CopyIn(std::as_bytes(std::span(values_).first(CountOf(*variable)))));
  return OkStatus();
}

}  // namespace tfjob::strategy
