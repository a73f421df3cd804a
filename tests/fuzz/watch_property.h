// What must hold of any bytes that an API server sends.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Reads the bytes as a watch of pods, of services and of TFJobs and ends the process (ENFORCE) when a property is broken:
// reading never crashes; the lines and what they decode to do not depend on how the bytes come in pieces; what the fast
// decoder takes, the slow one takes with the same result; whatever a page holds, it is read or refused.
void CheckWatchProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
