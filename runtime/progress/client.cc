#include "runtime/progress/client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/progress/progress.grpc.pb.h"

namespace tfjob::progress {
namespace {

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // Reconnect soon, since the task may not be up yet.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

}  // namespace

struct ProgressClient::Connection {
  explicit Connection(const std::string& address)
      : stub(ProgressService::NewStub(
            grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), Arguments()))) {}
  const std::unique_ptr<ProgressService::Stub> stub;
};

ProgressClient::ProgressClient(std::string address)
    : address_(std::move(address)), connection_(std::make_unique<Connection>(address_)) {}

ProgressClient::~ProgressClient() = default;

StatusOr<Progress> ProgressClient::Fetch(Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  GetProgressReply reply;
  const grpc::Status status = connection_->stub->Get(&context, GetProgressRequest(), &reply);
  if (!status.ok()) {
    return Status(static_cast<StatusCode>(status.error_code()),
                  StrCat("progress of ", address_, ": ", status.error_message()));
  }
  ASSIGN_OR_RETURN(Json json, ParseJson(reply.json(), StrCat("progress of ", address_)));
  return ParseProgress(json);
}

}  // namespace tfjob::progress
