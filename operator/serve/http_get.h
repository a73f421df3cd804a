// For tests: what a server of this machine answers.
#pragma once

#include <cstdint>
#include <string>

namespace tfjob::serve {

// The whole answer, from "HTTP/1.0 200" on, to `GET path`; "" when nobody listens.
std::string HttpGet(uint16_t port, const std::string& path);

}  // namespace tfjob::serve
