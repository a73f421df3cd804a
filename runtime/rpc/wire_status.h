// Reads a status that a peer has sent as a number and a message.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace tfjob::rpc {

// Returns Unknown if `code` is not a status code.
inline Status StatusFromWire(int64_t code, const std::string& message) {
  constexpr auto kLast = static_cast<int64_t>(StatusCode::kUnauthenticated);
  if (code < 0 || code > kLast) {
    return Status(StatusCode::kUnknown, StrCat(message, " (status ", code, ")"));
  }
  return Status(static_cast<StatusCode>(code), message);
}

// Like StatusFromWire, but for a frame that must report an error: returns an error even if the peer
// sends OK.
inline Status ErrorFromWire(int64_t code, const std::string& message) {
  return StatusFromWire(code == 0 ? -1 : code, message);
}

}  // namespace tfjob::rpc
