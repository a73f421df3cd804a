// Makes errors of reasons that other ranks report. Private to the rooms of collectives.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::collectives {

// Returns the error with this code, or with `otherwise` if it is the code of no error. The bytes
// come from a peer and may be anything: control characters, and bytes beyond ASCII if the text is
// not UTF-8, become '?'.
Status ReasonOfPeer(uint32_t code, std::string_view text, StatusCode otherwise);

}  // namespace tfjob::collectives
