// Serves probes and metrics: a small HTTP/1.1 server that answers GET and HEAD for a few paths.
//
// One thread serves all connections. Each request and each response has a deadline. Request heads
// are limited to 16 KiB, and request bodies are rejected. If there are already `max_connections`, a
// new connection replaces an existing one. The server chooses the address with the most
// connections, and closes the connection from this address that has waited longest for a request.
// Therefore, even very many idle connections cannot keep probes out.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "operator/serve/bind_address.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::serve {

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Returns the response. `query` is the text after the '?' of the path; "" if there is none.
// The server's only thread calls the handlers, so a slow handler delays all other requests.
using Handler = std::function<Response(const std::string& query)>;

struct ServerOptions {
  BindAddress address;
  std::map<std::string, Handler> handlers;  // by path
  Duration deadline = 10s;  // per request and per response; an idle connection is closed after it
  int max_connections = 64;
};

class Server {
 public:
  // Starts listening and serving. Returns InvalidArgument if the host is not an IP address, and
  // Unavailable if the address is in use or does not belong to this machine.
  static StatusOr<std::unique_ptr<Server>> Create(ServerOptions options);
  // Closes all connections.
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;
};

}  // namespace tfjob::serve
