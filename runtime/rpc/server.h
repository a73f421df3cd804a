// Runs a task's only server, which accepts all streams and data connections to the task. Control,
// parameters, progress and collectives share its port. gRPC does not listen on the port itself: a
// wire::Listener accepts each connection, runs the hello on it, and hands it over once the peer has
// proven the job's key: to gRPC, to the thread of a new stream (kStreamChannel in
// socket_connector.h), or to the handler of other data connections. Streams arrive over gRPC or on
// sockets of their own; the handlers are the same.
#pragma once

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
struct ProvenPeer;
}  // namespace tfjob::wire

namespace tfjob::rpc {

class StreamServer;

struct ServerOptions {
  std::string host = "0.0.0.0";
  int port = 0;  // 0: any free port
  Identity identity;
  Credentials credentials;
  std::vector<grpc::Service*> services;                         // must outlive the server
  std::vector<std::pair<std::string, StreamHandler*>> streams;  // likewise, by service name
  DataHandler* on_data = nullptr;  // likewise; null: this task takes only streams
};

class Server {
 public:
  // Binds without port reuse. Returns Unavailable, with a message that names host:port and says
  // what to do, if the port is taken (a predecessor of this task may still hold it). Returns
  // InvalidArgument if the host is not an address of this machine, and PermissionDenied if the port
  // is privileged.
  static StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  // Shuts down immediately.
  ~Server();

  int port() const;
  // Refuses new calls and lets calls in progress finish until the timeout, then cancels the rest.
  void Shutdown(Duration timeout);

 private:
  class StreamService;
  Server();
  Status CheckData(const Identity& self, std::string_view claims);
  // Returns null if the task takes no data connections of this channel.
  DataHandler* HandlerOf(const std::string& channel);
  void HandOver(wire::ProvenPeer peer);
  void HandOverData(wire::ProvenPeer peer);

  DataHandler* on_data_ = nullptr;
  std::unique_ptr<StreamService> streams_;
  std::unique_ptr<StreamServer> socket_streams_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<wire::Listener> listener_;
};

}  // namespace tfjob::rpc
