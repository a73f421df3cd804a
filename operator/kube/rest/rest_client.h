// Sends requests to an API server with credentials, rate limits, deadlines and retries, and reports
// each attempt to an observer. Independent of the kinds of objects.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "operator/kube/config/credentials.h"
#include "operator/kube/rest/token_bucket.h"
#include "operator/kube/rest/transport.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// Describes one attempt to send a request, whether it was answered or failed. For a stream, the
// attempt covers the time until the response started.
struct RestCall {
  std::string_view method;  // "POST"; for streams "LIST" or "WATCH"; valid during OnCall
  std::string_view host;    // RestOptions::host; valid during OnCall
  int code = 0;             // HTTP status code; 0 if there was no response
  Duration duration{0};
  Duration limiter_wait{0};  // time spent in the client's flow control before the attempt
  bool retry = false;        // the request has been sent before
  size_t request_bytes = 0;
  size_t response_bytes = 0;
};

// Receives every attempt. Implementations must be thread-safe and fast.
class RestObserver {
 public:
  virtual ~RestObserver() = default;
  virtual void OnCall(const RestCall& call) = 0;
};

struct RestOptions {
  double qps = 300;  // 0: no limit
  int burst = 500;
  int max_in_flight = 64;  // each call in flight uses a connection
  // The time limit for a call, including all waiting. It is longer than the 34 s after which an API
  // server abandons a write.
  Duration deadline{45s};
  RestObserver* observer = nullptr;  // must outlive the client
  std::string host;                  // "10.96.0.1:443", for the observer
  // Called immediately before each request other than a GET is sent, after any wait for flow
  // control or a retry. If this returns false, the request fails with FailedPrecondition and is not
  // sent. Must be thread-safe and fast. If empty, all requests may be sent.
  std::function<bool()> may_write;
};

// Sends requests. Thread-safe.
class RestClient {
 public:
  RestClient(std::unique_ptr<Transport> transport, std::shared_ptr<Credentials> credentials,
             RestOptions options);

  // Returns the response if its code is 2xx, and otherwise the server's error (api_error.h).
  // Retries after a wait, at most ten times and within the deadline, if the server answers 429, or
  // 5xx with Retry-After. Retries once, with renewed credentials, if the server answers 401.
  StatusOr<HttpResponse> Call(HttpRequest request);

  // A stream whose response has started. `head` is the status line and the headers, regardless of
  // the code. Streams are neither delayed by flow control nor retried.
  struct Opened {
    HttpResponse head;
    std::unique_ptr<HttpStream> stream;
  };
  // Opens a stream and waits at most `patience` for its response to start. Before waiting, calls
  // `started` with the stream, so that another thread can cancel it. If no response starts, calls
  // `started` with nullptr. `method` is the method to report to the observer.
  StatusOr<Opened> Open(HttpRequest request, std::string_view method, Duration patience,
                        const std::function<void(HttpStream*)>& started);

  // Makes all calls fail with Cancelled, including those that are waiting.
  void Stop();

 private:
  struct Attempt {
    StatusOr<HttpResponse> response;
    RequestCredentials credentials;
  };

  Status AwaitTurn(std::chrono::steady_clock::time_point deadline, Duration& waited);
  Status Sleep(Duration time);
  Attempt Try(const HttpRequest& request, std::chrono::steady_clock::time_point deadline,
              bool retry);
  bool MaySend(const HttpRequest& request) const;
  void EndTurn();
  void LogWarnings(const HttpResponse& response);

  const std::unique_ptr<Transport> transport_;
  const std::shared_ptr<Credentials> credentials_;
  const RestOptions options_;
  Mutex mutex_;
  CondVar woken_;      // wakes Sleep(); condition: stopped_
  CondVar turn_free_;  // wakes callers that wait for a turn; condition: in_flight_, stopped_
  TokenBucket bucket_ ABSL_GUARDED_BY(mutex_);
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> warned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::kube
