#include "runtime/ps/server.h"

namespace tfjob::ps {

StatusOr<std::unique_ptr<ParameterServer>> ParameterServer::Create(ServerOptions) {
  return Unimplemented("the parameter server");
}

}  // namespace tfjob::ps
