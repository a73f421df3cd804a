// HTTP to one server and nothing else: no Kubernetes, no JSON, no flow control. The only
// implementation is MakeTransport(), over cpprestsdk (cpprest_transport.cc); whatever speaks to an
// API server speaks through this.
//
// Errors: Unavailable (no connection, TLS, an answer that breaks off), DeadlineExceeded, Cancelled,
// InvalidArgument (certificates or URLs that do not parse). Every one names the server. Whatever
// code the server answered is no error here.
//
// A request whose kept connection turns out to be closed is sent once more on a new one, whatever
// its method: the server may see it twice.
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
  std::string content_type;  // of the body
  std::string body;          // "": none
};

struct HttpResponse {
  int code = 0;
  std::string content_type;
  std::string content_encoding;         // "" unless the server compressed, which nobody asked for
  std::optional<Duration> retry_after;  // given in seconds; dates are not read
  std::vector<std::string> warnings;    // the texts of Warning headers
  std::string body;                     // of streams: not here, see Read()
};

// An answer that comes piece by piece. For one thread, Cancel() apart. The destructor cancels.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Waits for status line and headers.
  virtual StatusOr<HttpResponse> Head(Duration timeout) = 0;
  // The next bytes of the body, as many as are there; waits for some. "": the body is complete.
  // DeadlineExceeded: nothing came for that long; one may go on reading. After 4 MiB that nobody
  // reads, the server has to wait. Behind the bytes the string has kReadPadding of spare capacity.
  virtual StatusOr<std::string> Read(Duration timeout) = 0;
  // From any thread: Head and Read return Cancelled, now and later.
  virtual void Cancel() = 0;
};

inline constexpr size_t kReadPadding = 64;

// Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // The whole exchange within `timeout`.
  virtual StatusOr<HttpResponse> Send(HttpRequest request, const RequestCredentials& credentials,
                                      Duration timeout) = 0;
  // Sends and returns; what becomes of it is told by Head(). Streams have connections of their own.
  virtual StatusOr<std::unique_ptr<HttpStream>> Open(HttpRequest request,
                                                     const RequestCredentials& credentials) = 0;
  // Ends everything that is under way, and refuses what comes later, with Cancelled. What the
  // server has read already it may still carry out.
  virtual void Stop() = 0;
};

struct TransportOptions {
  std::string user_agent = "tfjob-operator";
  // Longer answers to Send() are Unavailable.
  size_t max_response_bytes = size_t{256} << 20;
  // Since when a silent peer counts as dead: TCP keepalive on connections of streams.
  Duration keepalive_idle{30s};
};

// The config's warnings are the caller's to log. The first one in a process starts cpprestsdk's one
// thread: FailedPrecondition when somebody else has started its pool with more. Every transport must
// be gone before main ends. InvalidArgument for servers that are named by an address of IPv6.
StatusOr<std::unique_ptr<Transport>> MakeTransport(const ClusterConfig& config,
                                                   const TransportOptions& options = {});

}  // namespace tfjob::kube
