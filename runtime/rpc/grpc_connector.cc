#include "runtime/rpc/grpc_connector.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>

#include "runtime/rpc/grpc_arguments.h"
#include "runtime/rpc/grpc_stream.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/status_mapping.h"

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
  explicit GrpcConnector(Credentials credentials) : credentials_(credentials) {}

  StatusOr<OpenStream> Connect(const std::string& address, const std::string& service,
                               const Identity& self, Duration timeout) override {
    const Time deadline = RealClock().Now() + timeout;
    auto channel = MakeChannel(address);
    if (!channel->WaitForConnected(std::chrono::system_clock::time_point(deadline))) {
      return Unavailable(address, ": no connection within ", FormatDuration(timeout));
    }
    auto transport = std::make_unique<ClientTransport>(std::move(channel));
    StatusOr<Identity> peer = Greet(*transport, service, self, deadline);
    if (!peer.ok()) return Annotate(peer.status(), address);
    return OpenStream{std::move(transport), *std::move(peer)};
  }

 private:
  std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) const {
    grpc::ChannelArguments arguments;
    for (const auto& [name, value] : kStreamArguments) arguments.SetInt(name, value);
    // The channel must have a connection of its own, so that losing the connection means losing
    // this peer.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
    arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 500);
    // Tasks of a job connect directly, without a proxy.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    return grpc::CreateCustomChannel(address, ChannelCredentialsOf(credentials_), arguments);
  }

  static StatusOr<Identity> Greet(ClientTransport& transport, const std::string& service,
                                  const Identity& self, Time deadline) {
    HandshakeTimer timer(transport, deadline - RealClock().Now());
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
  return std::make_unique<GrpcConnector>(credentials);
}

}  // namespace tfjob::rpc
