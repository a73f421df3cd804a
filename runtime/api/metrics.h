// Defines the results that training and evaluation report.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "status.h"

namespace tfjob::api {

// The loss and the metrics, in the order of compile(): "loss", "accuracy", …; during training, also
// the validation metrics: "val_loss", …
class Metrics {
 public:
  Metrics() = default;
  explicit Metrics(std::vector<std::pair<std::string, double>> values)
      : values_(std::move(values)) {}

  const std::vector<std::pair<std::string, double>>& values() const& { return values_; }
  std::vector<std::pair<std::string, double>> values() && { return std::move(values_); }
  bool has(const std::string& name) const;
  // Returns the metric with this name, or NaN if there is no such metric.
  double operator[](const std::string& name) const;
  // Returns the metric with this name. Returns InvalidArgument, with the existing names, if there
  // is no such metric.
  Result<double> At(const std::string& name) const;

 private:
  std::vector<std::pair<std::string, double>> values_;
};

// Prints the metrics in the form "loss=0.33 accuracy=0.88".
std::ostream& operator<<(std::ostream& out, const Metrics& metrics);

// The metrics that Fit has reported at the end of each epoch.
struct History {
  std::vector<int64_t> epoch;  // the indices of the epochs, from 0
  // Maps each metric to its values, one per element of `epoch`. Validation metrics have values only
  // for epochs with validation (FitOptions::validation_freq). If a callback may change the learning
  // rate (CallbackHooks::MaySetLearningRate, which returns false for a LambdaCallback),
  // "learning_rate" is the rate at the end of each epoch.
  std::map<std::string, std::vector<double>> values;
  // True if a callback has stopped the training before the last step.
  bool stopped = false;
};

}  // namespace tfjob::api
