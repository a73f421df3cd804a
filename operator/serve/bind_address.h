// Parses the address that a server listens on, as given by flags: ":8080", "127.0.0.1:8080",
// "[::1]:8080"; "0" or "" switches it off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::serve {

struct BindAddress {
  std::string host;   // "": all interfaces; otherwise an IP address
  uint16_t port = 0;  // 0: any free one

  bool operator==(const BindAddress&) const = default;
};

// Returns nullopt if it is switched off.
StatusOr<std::optional<BindAddress>> ParseBindAddress(std::string_view text);

}  // namespace tfjob::serve
