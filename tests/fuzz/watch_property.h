// Checks properties of the watch decoder that must hold for arbitrary bytes from an API server.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Reads the bytes as a watch of pods, services, TFJobs, nodes and pod groups and aborts the process
// (ENFORCE) if a property is violated:
//   - reading never crashes;
//   - the lines do not depend on the pieces in which the bytes arrive;
//   - the slow decoder accepts what the fast one accepts, except for nodes and for lines with
//     duplicate keys, and both decode the same pods;
//   - reading the bytes as a page never crashes;
//   - whatever an object contains, the other objects of its page are delivered, and a watch line
//     with the object becomes an event about the object;
//   - an error response always has a message, whatever the response contains.
void CheckWatchProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
