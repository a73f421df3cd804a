// Computes JSON merge patches (RFC 7386).
#pragma once

#include "runtime/base/json.h"

namespace tfjob::render {

// Returns the merge patch that turns `from` into `to`; an empty object if they are equal. The patch
// removes members that only `from` has by setting them to null. Therefore, `to` must not contain
// null.
Json MergePatch(const Json& from, const Json& to);

}  // namespace tfjob::render
