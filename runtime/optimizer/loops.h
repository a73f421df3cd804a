// Selects the inner loop of an optimizer. Private to this package.
#pragma once

#include "runtime/optimizer/update.h"

namespace tfjob::optimizer::internal {

template <typename T>
typename Update<T>::Loop LoopOf(const Optimizer& optimizer);

}  // namespace tfjob::optimizer::internal
