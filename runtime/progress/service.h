// Serves a task's progress on a gRPC server.
#pragma once

#include <functional>
#include <memory>

#include "runtime/progress/progress.h"

namespace grpc {
class Service;
}

namespace tfjob::progress {

// `current` is called on gRPC's threads. It must be thread-safe, return at once, and stay valid
// while the server runs.
std::unique_ptr<grpc::Service> MakeProgressService(std::function<Progress()> current);

}  // namespace tfjob::progress
