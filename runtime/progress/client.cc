#include "runtime/progress/client.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/progress/progress.grpc.pb.h"
#include "runtime/wire/dial.h"

namespace tfjob::progress {
namespace {

// Limits the size of a message and refuses compression: a task's progress has a few kilobytes and
// is never compressed.
grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, 4 << 20);
  return arguments;
}

Duration Now() {
  return RealClock().Monotonic();
}

}  // namespace

struct ProgressClient::Connection {
  explicit Connection(std::shared_ptr<grpc::Channel> channel)
      : stub(ProgressService::NewStub(std::move(channel))) {}
  const std::unique_ptr<ProgressService::Stub> stub;
};

ProgressClient::ProgressClient(std::string address, std::optional<wire::JobKey> key)
    : address_(std::move(address)), key_(std::move(key)) {}

ProgressClient::~ProgressClient() = default;

std::shared_ptr<ProgressClient::Connection> ProgressClient::Current() {
  MutexLock lock(mutex_);
  return connection_;
}

void ProgressClient::Drop(const std::shared_ptr<Connection>& broken) {
  MutexLock lock(mutex_);
  if (connection_ == broken) connection_ = nullptr;
}

// Opens a connection without claims (wire/hello.h), because a caller that requests progress need
// not be a task.
StatusOr<std::shared_ptr<ProgressClient::Connection>> ProgressClient::Open(Duration timeout) {
  ASSIGN_OR_RETURN(wire::Dialled dialled,
                   wire::Dial(address_, {.key = key_ ? &*key_ : nullptr, .timeout = timeout}));
  auto connection = std::make_shared<Connection>(
      grpc::CreateCustomInsecureChannelFromFd(address_, dialled.socket.Release(), Arguments()));
  MutexLock lock(mutex_);
  connection_ = connection;
  return connection;
}

StatusOr<Progress> ProgressClient::Fetch(Duration timeout) {
  const Duration deadline = Now() + timeout;
  const std::string what = StrCat("progress of ", address_);
  // A connection that was already open may be broken. In that case, try once more with a new
  // connection.
  for (std::shared_ptr<Connection> open = Current();; open = nullptr) {
    StatusOr<std::shared_ptr<Connection>> connection = open;
    if (open == nullptr) connection = Open(deadline - Now());
    if (!connection.ok()) return Annotate(connection.status(), what);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + (deadline - Now()));
    GetProgressReply reply;
    const grpc::Status status = (*connection)->stub->Get(&context, GetProgressRequest(), &reply);
    if (status.ok()) {
      ASSIGN_OR_RETURN(Json json, ParseJson(reply.json(), what));
      return ParseProgress(json);
    }
    if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) Drop(*connection);
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE || open == nullptr) {
      return Status(static_cast<StatusCode>(status.error_code()),
                    StrCat(what, ": ", status.error_message()));
    }
  }
}

}  // namespace tfjob::progress
