// Checks properties of arbitrary bytes that an API server sends.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Reads the bytes as a watch of pods, of services and of TFJobs and aborts the process (ENFORCE) if
// a property is violated:
//   - reading never crashes;
//   - the lines and their decoded objects do not depend on how the bytes are split;
//   - what the fast decoder accepts, the slow one accepts with the same result;
//   - every page is read or refused, whatever it contains.
void CheckWatchProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
