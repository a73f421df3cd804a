// Collects the metrics of each epoch of Fit.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/metrics.h"

namespace tfjob::api {

// Used by one thread.
class EpochRecord {
 public:
  // Appends a complete epoch. `epoch` must be greater than all earlier ones.
  void Add(int64_t epoch, const std::vector<std::pair<std::string, double>>& values);
  // Removes `epoch` and all later ones, which will be trained again.
  void Remove(int64_t epoch);
  // Records that a callback has stopped the training before the last step.
  void Stop() { history_.stopped = true; }

  const History& history() const { return history_; }

 private:
  History history_;
  std::vector<std::vector<std::string>> names_;  // of the metrics of each epoch
};

}  // namespace tfjob::api
