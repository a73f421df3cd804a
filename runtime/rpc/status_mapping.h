// Converts between gRPC's statuses and ours; no other file does so. Both use the same numbers for
// the codes.
#pragma once

#include <grpcpp/support/status.h>

#include "runtime/base/status.h"

namespace tfjob::rpc {

inline Status FromGrpc(const grpc::Status& status) {
  return Status(static_cast<StatusCode>(status.error_code()), status.error_message());
}

inline grpc::Status ToGrpc(const Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(Message(status)));
}

}  // namespace tfjob::rpc
