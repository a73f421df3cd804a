// The room's logger. Inside the room only.
#pragma once

#include "runtime/base/log.h"

namespace tfjob::control {

inline constexpr Logger kLog("control");

}  // namespace tfjob::control
