#include "runtime/rpc/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <algorithm>

#include "runtime/rpc/grpc_arguments.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/socket_connector.h"
#include "runtime/rpc/stream_server.h"
#include "runtime/wire/listener.h"

namespace tfjob::rpc {

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  wire::ListenerOptions listening{
      .host = options.host, .port = options.port, .key = options.credentials.key};
  ASSIGN_OR_RETURN(listening.claims, ClaimsOf(options.identity));
  std::unique_ptr<Server> server(new Server);
  server->streams_ = std::make_unique<StreamServer>(options.identity, std::move(options.streams));
  server->on_data_ = options.on_data;
  if (!options.services.empty()) {
    ASSIGN_OR_RETURN(server->grpc_, StartGrpc(options.services));
  }
  listening.check = [server = server.get(), self = options.identity](std::string_view claims,
                                                                     wire::Purpose purpose) {
    return server->Check(self, claims, purpose);
  };
  listening.on_peer = [server = server.get()](wire::ProvenPeer peer) {
    server->HandOver(std::move(peer));
  };
  ASSIGN_OR_RETURN(server->listener_, wire::Listener::Start(std::move(listening)));
  return server;
}

StatusOr<std::unique_ptr<grpc::Server>> Server::StartGrpc(
    const std::vector<grpc::Service*>& services) {
  PrepareGrpc();
  grpc::ServerBuilder builder;
  for (const auto& [name, value] : kServerArguments) builder.AddChannelArgument(name, value);
  builder.SetResourceQuota(ProcessQuota());
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> started = builder.BuildAndStart();
  if (started == nullptr) return Internal("gRPC does not start a server");
  return started;
}

Server::Server() = default;

Server::~Server() {
  Shutdown(Duration(0));
}

int Server::port() const {
  return listener_->port();
}

// Decides whether to accept a caller that has proven the job's key. A caller without claims is not
// a task and may only read progress.
Status Server::Check(const Identity& self, std::string_view claims, wire::Purpose purpose) {
  const bool data = purpose == wire::Purpose::kData;
  if (!data && grpc_ == nullptr) {
    return Unimplemented("refused: this task takes no connections for 'grpc'");
  }
  if (!data && claims.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const Caller caller, ReadClaims(std::string(claims)));
  RETURN_IF_ERROR(CheckPeer(self, caller.identity, caller.protocol_version));
  if (!data) return OkStatus();
  if (caller.service == kStreamChannel) return streams_->Admit(caller.identity, caller.service);
  if (on_data_ == nullptr) {
    return Unimplemented("refused: this task takes no connections for 'data' except streams");
  }
  return on_data_->Admit(caller.identity, caller.service);
}

void Server::HandOver(wire::ProvenPeer peer) {
  if (peer.purpose == wire::Purpose::kData) return HandOverData(std::move(peer));
  grpc::AddInsecureChannelFromFd(grpc_.get(), peer.socket.Release());
}

void Server::HandOverData(wire::ProvenPeer peer) {
  StatusOr<Caller> caller = ReadClaims(peer.claims);
  if (!caller.ok()) return;  // cannot happen: Check has already read these claims
  DataHandler* const handler =
      caller->service == kStreamChannel ? static_cast<DataHandler*>(streams_.get()) : on_data_;
  handler->Accept({.socket = std::move(peer.socket),
                   .peer = std::move(caller->identity),
                   .address = std::move(peer.address),
                   .channel = std::move(caller->service)});
}

void Server::Shutdown(Duration timeout) {
  const Duration deadline = RealClock().Monotonic() + timeout;
  if (listener_ != nullptr) listener_->Stop();
  streams_->Stop(timeout);
  if (grpc_ == nullptr) return;
  const Duration left = std::max(deadline - RealClock().Monotonic(), Duration(0));
  grpc_->Shutdown(std::chrono::system_clock::time_point(RealClock().Now() + left));
  grpc_->Wait();
}

}  // namespace tfjob::rpc
