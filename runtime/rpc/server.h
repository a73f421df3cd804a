// Runs a task's only gRPC server, which accepts all streams to the task. Control, parameters,
// progress and, later, collectives share its port.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/transport.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace tfjob::rpc {

struct ServerOptions {
  std::string host = "0.0.0.0";
  int port = 0;  // 0: any free port
  Identity identity;
  Credentials credentials;
  std::vector<grpc::Service*> services;                         // must outlive the server
  std::vector<std::pair<std::string, StreamHandler*>> streams;  // likewise, by service name
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

  int port() const { return port_; }
  // Refuses new calls and lets calls in progress finish until the timeout, then breaks them.
  void Shutdown(Duration timeout);

 private:
  class StreamService;
  Server(std::unique_ptr<StreamService> streams, std::unique_ptr<grpc::Server> server, int port);

  std::unique_ptr<StreamService> streams_;
  std::unique_ptr<grpc::Server> server_;
  int port_;
};

}  // namespace tfjob::rpc
