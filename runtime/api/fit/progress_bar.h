// Prints the progress of Fit to standard output, as Keras does. Private to this package.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/api/metrics.h"
#include "runtime/api/session.h"
#include "runtime/base/clock.h"

namespace tfjob::api {

// Return the parts of Keras' progress bar:
//   "12/938 ━━━━━━━━━━━━━━━━━━━━ 3s 2ms/step", with the colours of a terminal
//   " - accuracy: 0.8123 - loss: 0.5312", with the metrics in the order of their names
//   "2ms/step"
std::string BarText(int64_t step, int64_t steps, Duration elapsed);
std::string MetricsText(const Metrics& metrics);
std::string TimePerStepText(Duration elapsed, int64_t steps);

// Owned by one thread.
class ProgressBar {
 public:
  // Resolves kAuto to kBar or kEpochs.
  ProgressBar(Verbose verbose, Clock& clock);

  // `epoch` counts from 0. The first `step` steps of the epoch are already complete.
  void BeginEpoch(int64_t epoch, int64_t epochs, int64_t step, int64_t steps);
  // Returns whether Update would print. The bar is redrawn at most every 100 ms.
  bool Due() const;
  void Update(int64_t step, const Metrics& metrics);
  void EndEpoch(const Metrics& metrics);

 private:
  // Replaces the bar's line with `text`.
  void PrintLine(const std::string& text, bool last);

  const Verbose verbose_;
  Clock& clock_;
  int64_t first_ = 0, steps_ = 0;
  Duration start_{0}, shown_{0};
};

}  // namespace tfjob::api
