// Opens streams over gRPC. Each stream is one bidirectional call, whose messages are raw byte
// buffers. Large payloads are not copied if their segments have a `release`.
//
// A connection begins with the hello of runtime/wire; then gRPC takes it over. Such a channel never
// reconnects, which suits streams: a task that loses a stream connects again.
#pragma once

#include <memory>

#include "runtime/rpc/credentials.h"
#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// Returns a connector that opens one TCP connection per stream. Thread-safe.
std::unique_ptr<Connector> MakeGrpcConnector(Credentials credentials = Credentials::Insecure());

}  // namespace tfjob::rpc
