// Defines the loggers of this package, and the interval at which a task reports that it is still
// waiting. Private to this package.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

namespace tfjob::train {

inline constexpr Logger kTrainLog("train");
inline constexpr Logger kChiefLog("chief");
inline constexpr Logger kServerLog("ps");
inline constexpr Logger kEvaluationLog("eval");

inline constexpr Duration kReportInterval = std::chrono::seconds(10);

}  // namespace tfjob::train
