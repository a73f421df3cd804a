// Opens the listening socket. Private to this package.
#pragma once

#include <string>

#include "runtime/wire/socket.h"

namespace tfjob::wire {

struct BoundSocket {
  UniqueFd socket;  // non-blocking, listening
  int port = 0;
};

// See Listener::Start.
StatusOr<BoundSocket> Bind(const std::string& host, int port);

}  // namespace tfjob::wire
