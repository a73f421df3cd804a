// Runs a task's only server, which accepts all connections to the task. Control, parameters,
// progress and collectives share its port. A wire::Listener accepts each connection and runs the
// hello on it. Once the peer has proven the job's key, the listener passes the connection to gRPC,
// to the thread of a new stream (kStreamChannel in socket_connector.h), or to the handler of other
// data connections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/data_connection.h"
#include "runtime/rpc/transport.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc
namespace tfjob::wire {
class Listener;
enum class Purpose : uint8_t;
struct ProvenPeer;
}  // namespace tfjob::wire

namespace tfjob::rpc {

class StreamServer;

struct ServerOptions {
  std::string host = "0.0.0.0";
  int port = 0;  // 0: any free port
  Identity identity;
  Credentials credentials;
  // The services and handlers must outlive the server.
  std::vector<grpc::Service*> services;  // if there are none, the task accepts no gRPC calls
  std::vector<std::pair<std::string, StreamHandler*>> streams;  // by service name
  DataHandler* on_data = nullptr;  // null: only streams are accepted as data connections
};

class Server {
 public:
  // Binds without port reuse. Returns Unavailable, with a message that names host:port and says
  // what to do, if the port is taken (an earlier process of this task may still have it). Returns
  // InvalidArgument if the host is not an address of this machine, and PermissionDenied if the port
  // is privileged.
  static StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  // Shuts down immediately.
  ~Server();

  int port() const;
  // Refuses new streams and calls, waits up to the timeout until those in progress are finished,
  // then breaks the remaining ones.
  void Shutdown(Duration timeout);

 private:
  Server();
  static StatusOr<std::unique_ptr<grpc::Server>> StartGrpc(
      const std::vector<grpc::Service*>& services);
  Status Check(const Identity& self, std::string_view claims, wire::Purpose purpose);
  void HandOver(wire::ProvenPeer peer);
  void HandOverData(wire::ProvenPeer peer);

  DataHandler* on_data_ = nullptr;
  std::unique_ptr<StreamServer> streams_;
  std::unique_ptr<grpc::Server> grpc_;  // null: no services
  std::unique_ptr<wire::Listener> listener_;
};

}  // namespace tfjob::rpc
