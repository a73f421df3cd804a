#include "runtime/rpc/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/method_handler.h>

#include <algorithm>
#include <map>

#include "runtime/base/mutex.h"
#include "runtime/rpc/grpc_arguments.h"
#include "runtime/rpc/grpc_stream.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/socket_connector.h"
#include "runtime/rpc/status_mapping.h"
#include "runtime/rpc/stream_server.h"
#include "runtime/wire/listener.h"

namespace tfjob::rpc {
namespace {

using ServerStream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// Decides whether to accept a caller that has proven the job's key. A caller without claims is not
// a task and may only read progress.
Status CheckClaims(const Identity& self, std::string_view claims) {
  if (claims.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const Caller caller, ReadClaims(std::string(claims)));
  return CheckPeer(self, caller.identity, caller.protocol_version);
}

}  // namespace

class Server::StreamService : public grpc::Service {
 public:
  struct ConnectedPeer {
    std::string address;
    Identity identity;  // empty if the peer is not a task
  };

  // The peers of the connections that gRPC was given. gRPC knows such a connection only by its
  // descriptor, so the peers are stored by descriptor; a new connection replaces an earlier one
  // that had the same descriptor. Thread-safe.
  class ConnectedPeers {
   public:
    void Add(int fd, ConnectedPeer peer) {
      MutexLock lock(mutex_);
      peers_.insert_or_assign(StrCat("fd:", fd), std::move(peer));
    }
    ConnectedPeer Find(const std::string& name) {
      MutexLock lock(mutex_);
      const auto found = peers_.find(name);
      return found == peers_.end() ? ConnectedPeer{.address = name, .identity = {}} : found->second;
    }

   private:
    Mutex mutex_;
    std::map<std::string, ConnectedPeer> peers_ ABSL_GUARDED_BY(mutex_);  // by gRPC's name
  };

  StreamService(Identity identity, std::vector<std::pair<std::string, StreamHandler*>> handlers)
      : identity_(std::move(identity)), handlers_(std::move(handlers)) {
    using Handler =
        grpc::internal::BidiStreamingHandler<StreamService, grpc::ByteBuffer, grpc::ByteBuffer>;
    AddMethod(new grpc::internal::RpcServiceMethod(
        kStreamMethod, grpc::internal::RpcMethod::BIDI_STREAMING,
        new Handler([](StreamService* service, grpc::ServerContext* context,
                       ServerStream* stream) { return service->Open(context, stream); },
                    this)));
  }

  ConnectedPeers& peers() { return peers_; }

 private:
  grpc::Status Open(grpc::ServerContext* context, ServerStream* stream) {
    GrpcStream<ServerStream, grpc::ServerContext> transport(stream, context);
    const ConnectedPeer peer = peers_.Find(context->peer());
    // The timer must be destroyed before Serve, or it would cancel a healthy stream.
    StatusOr<Admission> admission = [&] {
      HandshakeTimer timer(transport, kHandshakeTimeout);
      return Admit(
          transport, identity_, [&](const std::string& name) { return Find(name); },
          &peer.identity);
    }();
    if (!admission.ok()) return ToGrpc(admission.status());
    admission->handler->Serve(admission->caller.identity, peer.address, transport);
    return grpc::Status::OK;
  }

  StreamHandler* Find(const std::string& name) const {
    for (const auto& [service, handler] : handlers_) {
      if (service == name) return handler;
    }
    return nullptr;
  }

  const Identity identity_;
  const std::vector<std::pair<std::string, StreamHandler*>> handlers_;
  ConnectedPeers peers_;
};

// Decides whether to accept a data connection, which only a task may open.
Status Server::CheckData(const Identity& self, std::string_view claims) {
  ASSIGN_OR_RETURN(const Caller caller, ReadClaims(std::string(claims)));
  RETURN_IF_ERROR(CheckPeer(self, caller.identity, caller.protocol_version));
  DataHandler* const handler = HandlerOf(caller.service);
  if (handler == nullptr) {
    return Unimplemented("refused: this task takes no connections for 'data' except streams");
  }
  return handler->Admit(caller.identity, caller.service);
}

DataHandler* Server::HandlerOf(const std::string& channel) {
  return channel == kStreamChannel ? socket_streams_.get() : on_data_;
}

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  PrepareGrpc();
  wire::ListenerOptions listening{
      .host = options.host, .port = options.port, .key = options.credentials.key};
  ASSIGN_OR_RETURN(listening.claims, ClaimsOf(options.identity));
  std::unique_ptr<Server> server(new Server);
  server->socket_streams_ = std::make_unique<StreamServer>(options.identity, options.streams);
  server->streams_ = std::make_unique<StreamService>(options.identity, std::move(options.streams));
  grpc::ServerBuilder builder;
  for (const auto& [name, value] : kStreamArguments) builder.AddChannelArgument(name, value);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreamsOfAConnection);
  builder.SetResourceQuota(ProcessQuota());
  builder.RegisterService(server->streams_.get());
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) return Internal("gRPC does not start a server");
  server->on_data_ = options.on_data;
  listening.check = [self = options.identity, server = server.get()](std::string_view claims,
                                                                     wire::Purpose purpose) {
    return purpose == wire::Purpose::kData ? server->CheckData(self, claims)
                                           : CheckClaims(self, claims);
  };
  listening.on_peer = [server = server.get()](wire::ProvenPeer peer) {
    server->HandOver(std::move(peer));
  };
  ASSIGN_OR_RETURN(server->listener_, wire::Listener::Start(std::move(listening)));
  return server;
}

Server::Server() = default;

Server::~Server() {
  Shutdown(Duration(0));
}

int Server::port() const {
  return listener_->port();
}

void Server::HandOverData(wire::ProvenPeer peer) {
  StatusOr<Caller> caller = ReadClaims(peer.claims);
  if (!caller.ok()) return;  // cannot happen: CheckData has already read these claims
  DataHandler* const handler = HandlerOf(caller->service);
  handler->Accept({.socket = std::move(peer.socket),
                   .peer = std::move(caller->identity),
                   .address = std::move(peer.address),
                   .channel = std::move(caller->service)});
}

void Server::HandOver(wire::ProvenPeer peer) {
  if (peer.purpose == wire::Purpose::kData) return HandOverData(std::move(peer));
  StreamService::ConnectedPeer connected{.address = std::move(peer.address), .identity = {}};
  if (!peer.claims.empty()) {
    StatusOr<Caller> caller = ReadClaims(peer.claims);
    if (!caller.ok()) return;  // cannot happen: CheckClaims has already read these claims
    connected.identity = std::move(caller->identity);
  }
  const int fd = peer.socket.Release();
  streams_->peers().Add(fd, std::move(connected));
  grpc::AddInsecureChannelFromFd(server_.get(), fd);
}

void Server::Shutdown(Duration timeout) {
  if (server_ == nullptr) return;
  const Duration deadline = RealClock().Monotonic() + timeout;
  if (listener_ != nullptr) listener_->Stop();
  socket_streams_->Stop(timeout);
  const Duration left = std::max(deadline - RealClock().Monotonic(), Duration(0));
  server_->Shutdown(std::chrono::system_clock::time_point(RealClock().Now() + left));
  server_->Wait();
}

}  // namespace tfjob::rpc
