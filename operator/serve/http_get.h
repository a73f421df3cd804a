// Fetches a response from a server on this machine, for tests.
#pragma once

#include <cstdint>
#include <string>

namespace tfjob::serve {

// Returns the whole response to `GET path`, including the status line; "" if no server is
// listening.
std::string HttpGet(uint16_t port, const std::string& path);

}  // namespace tfjob::serve
