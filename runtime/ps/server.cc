#include "runtime/ps/server.h"

#include "runtime/ps/service.h"
#include "runtime/rpc/grpc_connector.h"

namespace tfjob::ps {

StatusOr<std::unique_ptr<ParameterServer>> ParameterServer::Create(ServerOptions options) {
  const int index = options.identity.task_index;
  const int servers = static_cast<int>(options.servers.size());
  if (index < 0 || index >= servers) {
    return InvalidArgument("ps ", index, ": the cluster has ", servers, " ps tasks");
  }
  std::unique_ptr<rpc::Connector> own;
  if (options.connector == nullptr) {
    own = rpc::MakeGrpcConnector(options.credentials);
    options.connector = own.get();
  }
  return std::unique_ptr<ParameterServer>(
      std::make_unique<Service>(std::move(options), std::move(own)));
}

}  // namespace tfjob::ps
