// Converts the reasons that other ranks report into errors. Private to the rooms of collectives.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::collectives {

// Returns an error with this code, or with `otherwise` if `code` is not the code of an error. The
// text comes from a peer and may contain any bytes: control characters become '?', and so do bytes
// beyond ASCII if the text is not UTF-8.
Status ReasonOfPeer(uint32_t code, std::string_view text, StatusCode otherwise);

}  // namespace tfjob::collectives
