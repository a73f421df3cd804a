// Sends requests to an API server with credentials, rate limits, deadlines and retries, and reports
// each call to an observer. Knows nothing about kinds.
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

// One attempt of a request, answered or failed. For watches: until the answer began.
struct RestCall {
  std::string_view method;  // "POST", and "WATCH" for watches; valid during OnCall
  std::string_view host;    // RestOptions::host; valid during OnCall
  int code = 0;             // HTTP status code; 0: no answer
  Duration duration{0};
  Duration limiter_wait{0};  // time spent before it in our own flow control
  bool retry = false;        // the request was sent before
  size_t request_bytes = 0;
  size_t response_bytes = 0;
};

// Thread-safe and fast.
class RestObserver {
 public:
  virtual ~RestObserver() = default;
  virtual void OnCall(const RestCall& call) = 0;
};

struct RestOptions {
  double qps = 300;  // 0: no limit
  int burst = 500;
  int max_in_flight = 64;  // each uses a connection
  // Per call, including waiting. Longer than the 34 s after which an API server gives up a write.
  Duration deadline{45s};
  RestObserver* observer = nullptr;  // must outlive the client
  std::string host;                  // "10.96.0.1:443", for the observer
  // Called before each request other than GET, after all waiting for a turn and for the server. If
  // it returns false, the request is not sent and fails with FailedPrecondition. Must be
  // thread-safe and fast. Empty: all requests may be sent.
  std::function<bool()> may_write;
};

// Thread-safe.
class RestClient {
 public:
  RestClient(std::unique_ptr<Transport> transport, std::shared_ptr<Credentials> credentials,
             RestOptions options);

  // Returns the answer if its code is 2xx, else the server's error (api_error.h). A 429, or a 5xx
  // with Retry-After, is retried after a wait, at most ten times and within the deadline; a 401 is
  // retried once, with renewed credentials.
  StatusOr<HttpResponse> Call(HttpRequest request);

  // A stream that has begun to answer: `head` is its answer, whatever the code. Flow control does
  // not delay it; that is for calls that cost the server a write. No retries.
  struct Opened {
    HttpResponse head;
    std::unique_ptr<HttpStream> stream;
  };
  // `started` gets the stream before its answer is awaited, so that another thread can cancel it.
  StatusOr<Opened> Open(HttpRequest request, std::string_view method, Duration patience,
                        const std::function<void(HttpStream*)>& started);

  // Ends all calls with Cancelled, including those that wait.
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
  CondVar woken_;      // wakes sleepers; condition: stopped_
  CondVar turn_free_;  // wakes waiters for one of max_in_flight; condition: in_flight_, stopped_
  TokenBucket bucket_ ABSL_GUARDED_BY(mutex_);
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> warned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::kube
