// Compares the values of a metric, for callbacks, and keeps what they remember between epochs.
// Private to this package.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/api/callback.h"
#include "runtime/api/fit/json_number.h"
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

// The values that a callback keeps between epochs.
struct CallbackMemory {
  int64_t waited = 0;   // epochs without an improvement; for ModelCheckpoint, steps
  int64_t cooling = 0;  // epochs until the next reduction of the rate may be considered
  std::optional<double> best;

  // Returns the memory as text. `owner` identifies the callback.
  std::string ToText(const std::string& owner) const {
    Json json = {{"owner", owner}, {"waited", waited}, {"cooling", cooling}};
    if (best) json["best"] = NumberToJson(*best);
    return PrintJson(json);
  }
  // Reads the text. Changes nothing if it is that of another owner, or no such text.
  void Read(const std::string& text, const std::string& owner) {
    StatusOr<CallbackMemory> read = Parse(text, owner);
    if (read.ok()) *this = *std::move(read);
  }

 private:
  static StatusOr<CallbackMemory> Parse(const std::string& text, const std::string& owner) {
    ASSIGN_OR_RETURN(const Json json, ParseJson(text, "the state of a callback"));
    const JsonField root(json);
    ASSIGN_OR_RETURN(const std::string written_by, root["owner"].String());
    if (written_by != owner) return NotFound("the state of ", written_by);
    CallbackMemory memory;
    ASSIGN_OR_RETURN(memory.waited, root["waited"].Int());
    ASSIGN_OR_RETURN(memory.cooling, root["cooling"].Int());
    if (root["best"].present()) {
      ASSIGN_OR_RETURN(memory.best, ReadNumber(root["best"]));
    }
    return memory;
  }
};

}  // namespace tfjob::api
