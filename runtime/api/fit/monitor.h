// Compares the values of a metric, for callbacks. Private to this package.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/api/callback.h"
#include "runtime/base/status.h"

namespace tfjob::api {

// Compares the values of a metric from epoch to epoch.
class Monitor {
 public:
  Monitor(std::string metric, std::string mode, double min_delta)
      : metric_(std::move(metric)), mode_(std::move(mode)), min_delta_(std::fabs(min_delta)) {}

  // Determines whether larger values of the metric are better. Returns InvalidArgument if the mode
  // is unknown.
  tfjob::Status Begin(const FitControl& run) {
    larger_ = mode_ == "auto" ? run.LargerIsBetter(metric_) : std::optional<bool>(mode_ == "max");
    if (mode_ == "auto" || mode_ == "min" || mode_ == "max") return OkStatus();
    return InvalidArgument("mode: expected one of auto, min, max, got \"", mode_, "\"");
  }

  // Returns the metric's value, or nullopt if the metric is missing because the epoch had no
  // validation.
  StatusOr<std::optional<double>> ValueIn(const FitControl& run, const Metrics& metrics) const {
    if (metrics.has(metric_) && larger_) return std::optional<double>(metrics[metric_]);
    if (metrics.has(metric_)) {
      return InvalidArgument("mode: whether larger or smaller values of ", metric_,
                             " are better is unknown; set mode to max or min");
    }
    const bool of_validation = metric_.starts_with("val_");
    if (of_validation && run.validates() && !metrics.has("val_loss"))
      return std::optional<double>();
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics.values()) names.push_back(name);
    return InvalidArgument("monitor: there is no metric ", metric_, "; expected one of ",
                           absl::StrJoin(names, ", "),
                           of_validation && !run.validates()
                               ? "; set FitOptions::validation (if the job has an evaluator, only "
                                 "the evaluator validates)"
                               : "");
  }

  // Returns whether the value is an improvement, which NaN never is.
  bool Improves(double value, std::optional<double> best) const {
    if (!best) return !std::isnan(value);
    return *larger_ ? value - min_delta_ > *best : value + min_delta_ < *best;
  }

 private:
  const std::string metric_, mode_;
  const double min_delta_;
  std::optional<bool> larger_;  // whether larger values are better; set by Begin
};

}  // namespace tfjob::api
