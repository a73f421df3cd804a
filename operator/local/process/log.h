// Declares the package's logger. Private to this package.
#pragma once

#include "runtime/base/log.h"

namespace tfjob::process {

inline constexpr Logger kLog("process");

}  // namespace tfjob::process
