#include "runtime/ps/server/server.h"

#include "runtime/ps/server/service.h"
#include "runtime/rpc/socket_connector.h"

namespace tfjob::ps {

StatusOr<std::unique_ptr<ParameterServer>> ParameterServer::Create(ServerOptions options) {
  if (options.identity.task_index < 0) {
    return InvalidArgument("ps ", options.identity.task_index, ": expected a number from 0");
  }
  std::unique_ptr<rpc::Connector> own;
  if (options.connector == nullptr) {
    own = rpc::MakeSocketConnector(options.credentials);
    options.connector = own.get();
  }
  return std::unique_ptr<ParameterServer>(
      std::make_unique<Service>(std::move(options), std::move(own)));
}

}  // namespace tfjob::ps
