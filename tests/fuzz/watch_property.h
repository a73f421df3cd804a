// Checks properties of arbitrary bytes, read as what an API server sends.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Reads the bytes as a watch of pods, services, TFJobs and nodes and aborts the process (ENFORCE)
// if a property is violated:
//   - reading never crashes;
//   - the lines do not depend on how the bytes are split;
//   - the slow decoder accepts what the fast one accepts, except for nodes and for lines with
//     duplicate keys, and both decode the same pods;
//   - reading the bytes as a page never crashes;
//   - an error response always has a message, whatever it contains.
void CheckWatchProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
