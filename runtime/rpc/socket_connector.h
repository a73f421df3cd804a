// Opens streams over TCP. Each stream has its own socket: a data connection (data_connection.h) on
// the channel kStreamChannel, which carries frames (socket_transport.h) after the hello of
// runtime/wire. A socket never reconnects; a task that loses a stream opens a new one.
#pragma once

#include <memory>

#include "runtime/rpc/credentials.h"
#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// The channel of the data connections that carry streams.
inline constexpr char kStreamChannel[] = "stream";

// Returns a connector that opens one TCP connection per stream. Thread-safe.
std::unique_ptr<Connector> MakeSocketConnector(Credentials credentials = Credentials::Insecure());

}  // namespace tfjob::rpc
