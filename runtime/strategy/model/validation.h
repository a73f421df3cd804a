// Defines a validation during training, which the training tasks may share.
#pragma once

#include <functional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/strategy/model/metric_totals.h"

namespace tfjob::strategy {

// The part of a validation that one task evaluates.
struct ValidationPart {
  int part = 0;
  int parts = 1;
  // Returns false if the result of this part is no longer needed, because the tasks must divide the
  // validation again. Null: the result is always needed.
  std::function<bool()> needed = nullptr;
};

struct Validation {
  // Evaluates a part of the batches, and adds its sums to the totals. A part may be empty. The sums
  // of all parts are those of the whole validation. Returns early, with OK, once part.needed()
  // returns false. Returns Cancelled if the task was asked to stop.
  std::function<Status(const ValidationPart& part, MetricTotals& totals)> evaluate;
  // Describes the data and the settings that must be equal in all tasks that share the validation,
  // one per line: "NAME: VALUE".
  std::string agreement;
};

}  // namespace tfjob::strategy
