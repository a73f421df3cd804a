// Reads the sums of the loss and the metrics that programs add up on a device
// (model::BuildOptions::totals).
#pragma once

#include <vector>

#include "runtime/base/status.h"
#include "runtime/strategy/model/metric_totals.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::strategy {

// Owned by one thread. Each function waits for all operations of the device, but no run that adds
// to the totals may be in progress.
class DeviceTotals {
 public:
  // `store` must contain the variables of the totals, which a compiled ModelProgram has created,
  // and must outlive the result.
  static StatusOr<DeviceTotals> Find(const ModelDefinition& definition,
                                     const variables::VariableStore& store);

  // Adds the sums of all runs since the last Take or Clear to `totals`, except the number of
  // examples.
  Status Take(MetricTotals& totals);
  Status Clear();

 private:
  std::vector<variables::Variable*> variables_;  // the loss, then the metrics
  std::vector<double> values_;                   // as many as the largest variable has
};

}  // namespace tfjob::strategy
