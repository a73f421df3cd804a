// Defines the learning rate that a run has set, in place of the one in the optimizer's definition.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::state {

struct LearningRate {
  double rate = 0;   // finite, at least 0
  int64_t step = 0;  // the number of updates that had been made when the rate was last set

  bool operator==(const LearningRate&) const = default;

  // Returns whether these values are valid. Call it for values from a file or a peer.
  bool IsValid() const {
    return std::isfinite(rate) && rate >= 0 && step >= 0 && step <= int64_t{1} << 53;
  }
};

// Returns FailedPrecondition if the optimizer has a schedule, which determines its rate, and
// InvalidArgument if the optimizer does not accept the rate.
inline Status CheckMaySet(double rate, const optimizer::Optimizer& optimizer) {
  if (optimizer.schedule.decay != optimizer::Decay::kNone) {
    return FailedPrecondition("the learning rate follows the schedule ",
                              optimizer::Name(optimizer.schedule.decay),
                              "; give the optimizer a number to change it");
  }
  const bool divides = optimizer.kind == optimizer::Kind::kFtrl;
  if (std::isfinite(rate) && (divides ? rate > 0 : rate >= 0)) return OkStatus();
  return InvalidArgument("learning rate: expected a finite number ",
                         divides ? "above 0, because Ftrl divides by it" : "of at least 0",
                         ", got ", rate);
}

}  // namespace tfjob::state
