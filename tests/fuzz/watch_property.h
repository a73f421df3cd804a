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
//   - whatever an object contains, the other objects of its page are delivered, and a line of a
//     watch that contains it becomes an event about it;
//   - an error response always has a message, whatever it contains.
void CheckWatchProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
