// Declares the package's logger. Private to this package.
#pragma once

#include "runtime/base/log.h"

namespace tfjob::control {

inline constexpr Logger kLog("control");

}  // namespace tfjob::control
