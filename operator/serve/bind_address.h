// Parses the value of a flag for the address on which a server listens: ":8080", "127.0.0.1:8080"
// or "[::1]:8080". "0" or "" switches the server off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::serve {

struct BindAddress {
  std::string host;   // an IP address; "" for all interfaces
  uint16_t port = 0;  // 0 for any free port

  bool operator==(const BindAddress&) const = default;
};

// Returns the address, or nullopt if `text` switches the server off.
StatusOr<std::optional<BindAddress>> ParseBindAddress(std::string_view text);

}  // namespace tfjob::serve
