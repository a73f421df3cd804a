// The room's logger. Inside the room only.
#pragma once

#include "runtime/base/log.h"

namespace tfjob::process {

inline constexpr Logger kLog("process");

}  // namespace tfjob::process
