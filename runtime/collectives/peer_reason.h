// Converts reasons that other ranks have reported to errors. Private to the packages of
// collectives.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::collectives {

// Returns an error with code `code`, or `otherwise` if `code` is not an error code. `text` comes
// from a peer and may contain any bytes: control characters become '?', and so do bytes beyond
// ASCII if `text` is not UTF-8.
Status ReasonOfPeer(uint32_t code, std::string_view text, StatusCode otherwise);

}  // namespace tfjob::collectives
