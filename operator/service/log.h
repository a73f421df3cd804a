// Declares the package's logger. Private to this package.
#pragma once

#include "runtime/base/log.h"

namespace tfjob::service {

inline constexpr Logger kLog("operator");

}  // namespace tfjob::service
