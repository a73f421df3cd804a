// Streams over gRPC: a bidirectional call whose messages are raw byte buffers over the sender's
// memory.
#pragma once

#include <memory>

#include "runtime/rpc/credentials.h"
#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// A connection of its own for every Connect. Thread-safe.
std::unique_ptr<Connector> MakeGrpcConnector(Credentials credentials = Credentials::Insecure());

}  // namespace tfjob::rpc
