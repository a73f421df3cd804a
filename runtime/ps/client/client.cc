#include "runtime/ps/client/client.h"

#include "runtime/ps/client/remote_client.h"
#include "runtime/rpc/socket_connector.h"

namespace tfjob::ps {

StatusOr<StepResult> ParameterClient::Exchange(
    std::span<const std::span<const std::byte>> gradients,
    std::span<const std::span<std::byte>> values, int64_t drawn) {
  RETURN_IF_ERROR(BeginStep(gradients, values, drawn));
  return EndStep();
}

StatusOr<std::unique_ptr<ParameterClient>> ParameterClient::Create(ClientOptions options) {
  RETURN_IF_ERROR(Validate(options.definition));
  if (options.servers.empty()) return InvalidArgument("the cluster has no ps task");
  if (options.chief && !options.provide_state) {
    return InvalidArgument("the chief must provide the state of empty servers");
  }
  if (options.max_staleness && options.definition.mode == Mode::kSynchronous) {
    return InvalidArgument("max_staleness: no gradient of a synchronous step is stale");
  }
  if (options.identity.incarnation == 0) options.identity.incarnation = rpc::NewIncarnation();
  std::unique_ptr<rpc::Connector> own;
  if (options.connector == nullptr) own = rpc::MakeSocketConnector(options.credentials);
  return std::unique_ptr<ParameterClient>(
      std::make_unique<RemoteClient>(std::move(options), std::move(own)));
}

}  // namespace tfjob::ps
