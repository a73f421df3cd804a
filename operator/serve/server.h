// A small HTTP/1.1 server for probes and metrics: GET and HEAD of a few paths.
//
// One thread serves all connections. Every connection has a deadline for each request and each answer; heads are at most
// 16 KiB, bodies are refused, and of more than `max_connections` the newest are closed at once.
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

// `query` is what follows the path's '?', "" when nothing does. Called on the server's thread, one at a time: quick.
using Handler = std::function<Response(const std::string& query)>;

struct Options {
  BindAddress address;
  std::map<std::string, Handler> handlers;  // by path
  Duration deadline = 10s;  // of one request, of one answer; also how long an idle connection stays
  int max_connections = 64;
};

class Server {
 public:
  // Listens and serves from now on. Unavailable: the address is taken, or none of this machine's.
  static StatusOr<std::unique_ptr<Server>> Create(Options options);
  // Closes all connections.
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;
};

}  // namespace tfjob::serve
