#include "runtime/rpc/socket_connector.h"

#include <utility>

#include "runtime/rpc/data_connection.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/socket_transport.h"

namespace tfjob::rpc {
namespace {

StatusOr<Identity> Greet(SocketTransport& transport, const std::string& service,
                         const Identity& self, const Identity& owner, Duration timeout) {
  transport.BeginHandshake(timeout);
  ASSIGN_OR_RETURN(Identity peer, Introduce(transport, service, self));
  RETURN_IF_ERROR(CheckOwner(owner, peer));
  transport.EndHandshake();
  return peer;
}

class SocketConnector : public Connector {
 public:
  explicit SocketConnector(Credentials credentials) : credentials_(std::move(credentials)) {}

  StatusOr<OpenStream> Connect(const std::string& address, const std::string& service,
                               const Identity& self, Duration timeout) override {
    const Duration deadline = RealClock().Monotonic() + timeout;
    ASSIGN_OR_RETURN(DataConnection connection,
                     DialDataUntil(address, kStreamChannel, self, credentials_, timeout));
    auto transport = std::make_unique<SocketTransport>(std::move(connection.socket));
    StatusOr<Identity> peer =
        Greet(*transport, service, self, connection.peer, deadline - RealClock().Monotonic());
    if (!peer.ok()) return Annotate(peer.status(), address);
    return OpenStream{std::move(transport), *std::move(peer)};
  }

 private:
  const Credentials credentials_;
};

}  // namespace

std::unique_ptr<Connector> MakeSocketConnector(Credentials credentials) {
  return std::make_unique<SocketConnector>(std::move(credentials));
}

}  // namespace tfjob::rpc
