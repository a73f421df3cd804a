// HTTP to one server and nothing else: no Kubernetes, no JSON, no flow control. The only
// implementation is MakeTransport(), over cpprestsdk (cpprest_transport.cc). All communication with
// an API server goes through this interface.
//
// Errors: Unavailable (no connection, TLS, an answer that breaks off), DeadlineExceeded, Cancelled,
// InvalidArgument (certificates or URLs that do not parse). Each names the server. An answer is not
// an error here, whatever its code.
//
// If a reused connection turns out to be closed, the request is sent once more on a new one,
// whatever its method: the server may see it twice.
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
};

struct HttpResponse {
  int code = 0;
  std::string content_type;
  std::string content_encoding;         // "" unless the server compressed without being asked to
  std::optional<Duration> retry_after;  // given in seconds; dates are ignored
  std::vector<std::string> warnings;    // the texts of the Warning headers
  std::string body;                     // not for streams, see Read()
};

// An answer that arrives in pieces. For one thread, except Cancel(). The destructor cancels.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Waits for the status line and headers.
  virtual StatusOr<HttpResponse> Head(Duration timeout) = 0;
  // Returns the available bytes of the body, waiting for some if there are none. "": the body
  // is complete. DeadlineExceeded: nothing arrived for that long; the caller may continue
  // reading. After 4 MiB of unread data the server has to wait. The string has kReadPadding of
  // spare capacity.
  virtual StatusOr<std::string> Read(Duration timeout) = 0;
  // From any thread: Head and Read return Cancelled, now and later.
  virtual void Cancel() = 0;
};

inline constexpr size_t kReadPadding = 64;

// Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // The whole exchange, within `timeout`.
  virtual StatusOr<HttpResponse> Send(HttpRequest request, const RequestCredentials& credentials,
                                      Duration timeout) = 0;
  // Sends and returns; Head() reports the outcome. Streams have connections of their own.
  virtual StatusOr<std::unique_ptr<HttpStream>> Open(HttpRequest request,
                                                     const RequestCredentials& credentials) = 0;
  // Ends everything in progress and refuses later requests, with Cancelled. The server may still
  // carry out what it has already read.
  virtual void Stop() = 0;
};

struct TransportOptions {
  std::string user_agent = "tfjob-operator";
  // Longer answers to Send() are Unavailable.
  size_t max_response_bytes = size_t{256} << 20;
  // Time after which a silent peer counts as dead: TCP keepalive on connections of streams.
  Duration keepalive_idle{30s};
};

// The caller must log the config's warnings. The first call in a process starts cpprestsdk's
// single thread: FailedPrecondition if other code has already started its pool with more threads.
// Every transport must be destroyed before main ends. InvalidArgument if the server is given by an
// IPv6 address.
StatusOr<std::unique_ptr<Transport>> MakeTransport(const ClusterConfig& config,
                                                   const TransportOptions& options = {});

}  // namespace tfjob::kube
