#include "runtime/rpc/grpc_connector.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>

#include "runtime/rpc/grpc_arguments.h"
#include "runtime/rpc/grpc_stream.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/status_mapping.h"
#include "runtime/wire/dial.h"

namespace tfjob::rpc {
namespace {

using ClientStream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// The calling end of a stream. Owns the channel, the context and the call.
class ClientTransport : public Transport {
 public:
  explicit ClientTransport(std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)),
        stream_(
            grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
                channel_.get(),
                grpc::internal::RpcMethod(kStreamMethod, grpc::internal::RpcMethod::BIDI_STREAMING,
                                          channel_),
                &context_)),
        inner_(stream_.get(), &context_) {}

  ~ClientTransport() override {
    // Finish waits for the end of the call. A cancelled call ends at once.
    context_.TryCancel();
    if (!finished_) stream_->Finish();
  }

  Status Write(const OutgoingFrame& frame) override { return inner_.Write(frame); }
  Status Read(IncomingFrame& frame) override { return inner_.Read(frame); }
  void Cancel() override { inner_.Cancel(); }

  // Returns why the call ended. Call once, after Read or Write has failed.
  Status Finish() {
    finished_ = true;
    return FromGrpc(stream_->Finish());
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<ClientStream> stream_;
  GrpcStream<ClientStream, grpc::ClientContext> inner_;
  bool finished_ = false;
};

class GrpcConnector : public Connector {
 public:
  explicit GrpcConnector(Credentials credentials) : credentials_(std::move(credentials)) {}

  StatusOr<OpenStream> Connect(const std::string& address, const std::string& service,
                               const Identity& self, Duration timeout) override {
    const Duration deadline = RealClock().Monotonic() + timeout;
    StatusOr<Dialled> dialled = Dial(address, self, timeout);
    if (!dialled.ok()) return Annotate(dialled.status(), address);
    auto transport = std::make_unique<ClientTransport>(MakeChannel(address, *dialled));
    StatusOr<Identity> peer = Greet(*transport, service, self, deadline);
    if (peer.ok() && *peer != dialled->peer) {
      peer = CheckOwner(dialled->peer, *peer);
    }
    if (!peer.ok()) return Annotate(peer.status(), address);
    return OpenStream{std::move(transport), *std::move(peer)};
  }

 private:
  struct Dialled {
    wire::UniqueFd socket;
    Identity peer;
  };

  StatusOr<Dialled> Dial(const std::string& address, const Identity& self, Duration timeout) const {
    wire::DialOptions options{.key = credentials_.key ? &*credentials_.key : nullptr,
                              .timeout = timeout};
    ASSIGN_OR_RETURN(options.claims, ClaimsOf(self));
    ASSIGN_OR_RETURN(wire::Dialled dialled, wire::DialUntil(address, options));
    ASSIGN_OR_RETURN(Caller peer, ReadClaims(dialled.peer_claims));
    RETURN_IF_ERROR(CheckPeer(self, peer.identity, peer.protocol_version));
    return Dialled{std::move(dialled.socket), std::move(peer.identity)};
  }

  // The channel's only connection is this one, so losing the connection means losing this peer.
  static std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, Dialled& dialled) {
    grpc::ChannelArguments arguments;
    for (const auto& [name, value] : kStreamArguments) arguments.SetInt(name, value);
    arguments.SetResourceQuota(ProcessQuota());
    return grpc::CreateCustomInsecureChannelFromFd(address, dialled.socket.Release(), arguments);
  }

  static StatusOr<Identity> Greet(ClientTransport& transport, const std::string& service,
                                  const Identity& self, Duration deadline) {
    HandshakeTimer timer(transport, deadline - RealClock().Monotonic());
    StatusOr<Identity> peer = Introduce(transport, service, self);
    if (peer.ok() || !absl::IsUnavailable(peer.status())) return peer;
    if (timer.expired()) return DeadlineExceeded("no answer to the handshake");
    // The stream broke: Finish returns the status that ended the call.
    Status why = transport.Finish();
    return why.ok() ? peer.status() : why;
  }

  const Credentials credentials_;
};

}  // namespace

std::unique_ptr<Connector> MakeGrpcConnector(Credentials credentials) {
  PrepareGrpc();
  return std::make_unique<GrpcConnector>(std::move(credentials));
}

}  // namespace tfjob::rpc
