// Sends HTTP requests to one server, without any knowledge of Kubernetes, JSON or flow control. All
// communication with an API server uses this interface. Except in tests, every Transport is created
// by MakeTransport() and uses cpprestsdk (cpprest_transport.cc).
//
// Errors: Unavailable (no connection, a TLS error, a response that breaks off), DeadlineExceeded,
// Cancelled, InvalidArgument (certificates or URLs that cannot be parsed). Each message names the
// server. A response is not an error, regardless of its code.
//
// If a reused connection turns out to be closed, the request is sent again on a new connection,
// regardless of its method, so the server may receive it twice.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/config/cluster_config.h"
#include "operator/kube/config/credentials.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

struct HttpRequest {
  std::string method;  // "GET"
  std::string
      target;  // path and query, escaped, below the server's own path: "/api/v1/pods?limit=5"
  std::string content_type;  // for the body
  std::string body;          // "": none
  // If a response to Send() is longer than this, Send() returns an error for which IsTooLong()
  // returns true. If 0, the transport's limit applies.
  size_t max_response_bytes = 0;
  std::string accept = "application/json";  // the representations that the caller can read
};

struct HttpResponse {
  int code = 0;
  std::string content_type;
  std::string content_encoding;         // "" unless the server compressed without being asked to
  std::optional<Duration> retry_after;  // given in seconds; dates are ignored
  std::vector<std::string> warnings;    // the texts of the Warning headers
  std::string body;                     // empty for streams, see HttpStream::Read
};

// Marks `error` as caused by a response longer than the request or the transport allows.
Status MarkTooLong(Status error);
// Returns whether MarkTooLong has marked the error.
bool IsTooLong(const Status& error);

// A response that arrives in pieces. Use it on one thread only, except for Cancel(). The destructor
// cancels the request.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Waits for the status line and headers.
  virtual StatusOr<HttpResponse> Head(Duration timeout) = 0;
  // Returns the bytes of the body that have arrived since the last call. If there are none, waits
  // for some. Returns "" at the end of the body. Returns DeadlineExceeded if no bytes arrived
  // within `timeout`; the caller may then continue reading. If 4 MiB of data are unread, the server
  // has to wait. The string has kReadPadding bytes of spare capacity.
  virtual StatusOr<std::string> Read(Duration timeout) = 0;
  // Makes current and later calls to Head and Read return Cancelled. May be called from any thread.
  virtual void Cancel() = 0;
};

inline constexpr size_t kReadPadding = 64;

// Sends requests to one server. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // Sends the request and returns the whole response. The exchange must complete within `timeout`.
  virtual StatusOr<HttpResponse> Send(HttpRequest request, const RequestCredentials& credentials,
                                      Duration timeout) = 0;
  // Starts sending the request and returns immediately; Head() reports the result. Streams do not
  // share connections with Send().
  virtual StatusOr<std::unique_ptr<HttpStream>> Open(HttpRequest request,
                                                     const RequestCredentials& credentials) = 0;
  // Makes current and later requests fail with Cancelled. The server may still execute requests
  // that it has already received.
  virtual void Stop() = 0;
};

struct TransportOptions {
  std::string user_agent = "tfjob-operator";
  // If a response to Send() is longer than this, Send() returns an Unavailable error for which
  // IsTooLong() returns true.
  size_t max_response_bytes = size_t{256} << 20;
  // The idle time after which TCP keepalive probes the peer of a stream's connection. A peer that
  // does not answer is considered dead after twice this time.
  Duration keepalive_idle{30s};
};

// Creates a transport. The caller must log the config's warnings. The first call in a process
// starts cpprestsdk's single thread. Returns FailedPrecondition if other code has already started
// cpprestsdk's pool with more threads. Returns InvalidArgument if the server is given as an IPv6
// address. Every transport must be destroyed before main returns.
StatusOr<std::unique_ptr<Transport>> MakeTransport(const ClusterConfig& config,
                                                   const TransportOptions& options = {});

}  // namespace tfjob::kube
