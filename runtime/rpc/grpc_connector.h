// Opens streams over gRPC. Each is a bidirectional call whose messages are raw byte buffers that
// refer to the sender's memory.
#pragma once

#include <memory>

#include "runtime/rpc/credentials.h"
#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// Returns a connector that opens a separate connection for every Connect. Thread-safe.
std::unique_ptr<Connector> MakeGrpcConnector(Credentials credentials = Credentials::Insecure());

}  // namespace tfjob::rpc
