#include "runtime/rpc/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/method_handler.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/rpc/grpc_arguments.h"
#include "runtime/rpc/grpc_stream.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/status_mapping.h"

namespace tfjob::rpc {
namespace {

using ServerStream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
constexpr Duration kHandshakeTimeout{10s};

// Returns the reason why the server could not be started on this port. gRPC does not report it, so
// this function tries to bind the port again.
Status WhyNot(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = StrCat(port);
  if (int error = getaddrinfo(host.c_str(), service.c_str(), &hints, &found); error != 0) {
    return InvalidArgument(host, ": ", gai_strerror(error));
  }
  int error = 0;
  const int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0) error = errno;
  close(fd);
  freeaddrinfo(found);
  if (error == EADDRNOTAVAIL) {
    return InvalidArgument(host, ":", port, ": this machine has no such address");
  }
  if (error == EACCES) return PermissionDenied(host, ":", port, ": a privileged port");
  return Unavailable(host, ":", port, ": the port is taken by another process; stop it ",
                     "(ss -ltnp shows it) or give this task another port in TF_CONFIG");
}

}  // namespace

class Server::StreamService : public grpc::Service {
 public:
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

 private:
  grpc::Status Open(grpc::ServerContext* context, ServerStream* stream) {
    GrpcStream<ServerStream, grpc::ServerContext> transport(stream, context);
    // The timer must be destroyed before Serve, or it would cancel a healthy stream.
    StatusOr<Admission> admission = [&] {
      HandshakeTimer timer(transport, kHandshakeTimeout);
      return Admit(transport, identity_, [&](const std::string& name) { return Find(name); });
    }();
    if (!admission.ok()) return ToGrpc(admission.status());
    admission->handler->Serve(admission->caller.identity, context->peer(), transport);
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
};

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  PrepareGrpc();
  auto streams = std::make_unique<StreamService>(options.identity, std::move(options.streams));
  grpc::ServerBuilder builder;
  for (const auto& [name, value] : kStreamArguments) builder.AddChannelArgument(name, value);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreamsOfAConnection);
  grpc::ResourceQuota quota("task");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
  int port = 0;
  builder.AddListeningPort(StrCat(options.host, ":", options.port),
                           ServerCredentialsOf(options.credentials), &port);
  builder.RegisterService(streams.get());
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return WhyNot(options.host, options.port);
  return std::unique_ptr<Server>(new Server(std::move(streams), std::move(server), port));
}

Server::Server(std::unique_ptr<StreamService> streams, std::unique_ptr<grpc::Server> server,
               int port)
    : streams_(std::move(streams)), server_(std::move(server)), port_(port) {}

Server::~Server() {
  Shutdown(Duration(0));
}

void Server::Shutdown(Duration timeout) {
  server_->Shutdown(std::chrono::system_clock::time_point(RealClock().Now() + timeout));
  server_->Wait();
}

}  // namespace tfjob::rpc
