// The room's logger. Inside the room only.
#pragma once

#include "runtime/base/log.h"

namespace tfjob::service {

inline constexpr Logger kLog("operator");

}  // namespace tfjob::service
