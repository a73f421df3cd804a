#include "runtime/rpc/data_connection.h"

#include "runtime/rpc/handshake.h"
#include "runtime/wire/dial.h"

namespace tfjob::rpc {
namespace {

using DialFunction = StatusOr<wire::Dialled>(const std::string&, const wire::DialOptions&);

StatusOr<DataConnection> Open(DialFunction& dial, const std::string& address,
                              const std::string& channel, const Identity& self,
                              const Credentials& credentials, Duration timeout) {
  wire::DialOptions options{.key = credentials.key ? &*credentials.key : nullptr,
                            .purpose = wire::Purpose::kData,
                            .timeout = timeout};
  ASSIGN_OR_RETURN(options.claims, ClaimsOf(self, channel));
  ASSIGN_OR_RETURN(wire::Dialled dialled, dial(address, options));
  ASSIGN_OR_RETURN(Caller peer, ReadClaims(dialled.peer_claims));
  RETURN_IF_ERROR(CheckPeer(self, peer.identity, peer.protocol_version));
  return DataConnection{.socket = std::move(dialled.socket),
                        .peer = std::move(peer.identity),
                        .address = address,
                        .channel = channel};
}

}  // namespace

StatusOr<DataConnection> DialData(const std::string& address, const std::string& channel,
                                  const Identity& self, const Credentials& credentials,
                                  Duration timeout) {
  StatusOr<DataConnection> connection =
      Open(wire::Dial, address, channel, self, credentials, timeout);
  if (!connection.ok()) return Annotate(connection.status(), address);
  return connection;
}

StatusOr<DataConnection> DialDataUntil(const std::string& address, const std::string& channel,
                                       const Identity& self, const Credentials& credentials,
                                       Duration timeout) {
  StatusOr<DataConnection> connection =
      Open(wire::DialUntil, address, channel, self, credentials, timeout);
  if (!connection.ok()) return Annotate(connection.status(), address);
  return connection;
}

}  // namespace tfjob::rpc
