// Defines the loggers of this package. Private to this package.
#pragma once

#include "runtime/base/log.h"

namespace tfjob::train {

inline constexpr Logger kCheckpointLog("checkpoint");
inline constexpr Logger kSummaryLog("summary");

}  // namespace tfjob::train
