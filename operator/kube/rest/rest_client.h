// Requests to an API server as they should be made: with credentials, within a rate and a deadline,
// patient when the server asks for it, and counted. Knows nothing of kinds.
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

// One answered or failed try of a request. For watches: until the answer began.
struct RestCall {
  std::string_view method;  // "POST", and "WATCH" for watches; valid during OnCall
  std::string_view host;    // RestOptions::host; valid during OnCall
  int code = 0;             // HTTP's; 0: no answer came
  Duration duration{0};
  Duration limiter_wait{0};  // before it, for our own flow control
  bool retry = false;        // the request was sent before
  size_t request_bytes = 0;
  size_t response_bytes = 0;
};

// Thread-safe, quick.
class RestObserver {
 public:
  virtual ~RestObserver() = default;
  virtual void OnCall(const RestCall& call) = 0;
};

struct RestOptions {
  double qps = 300;  // 0: no limit
  int burst = 500;
  int max_in_flight = 64;  // each is a connection
  // Of one call, waiting included. Longer than the 34 s after which an API server gives up a write.
  Duration deadline{45s};
  RestObserver* observer = nullptr;  // outlives the client
  std::string host;                  // "10.96.0.1:443", for the observer
  // Asked before each request that is no GET is sent, when all waiting for a turn and for the
  // server is over; false: it is not sent, FailedPrecondition. Thread-safe, quick. None: all may.
  std::function<bool()> may_write;
};

// Thread-safe.
class RestClient {
 public:
  RestClient(std::unique_ptr<Transport> transport, std::shared_ptr<Credentials> credentials,
             RestOptions options);

  // The answer if its code is 2xx, else the error that the server told (api_error.h). 429, and 5xx
  // with Retry-After, are waited for and tried again, at most ten times and up to the deadline; a
  // 401 once, with renewed credentials.
  StatusOr<HttpResponse> Call(HttpRequest request);

  // A stream that has begun to answer: `head` is its answer, whatever the code. Flow control, which
  // is for what costs the server a write, does not hold it up. No retries.
  struct Opened {
    HttpResponse head;
    std::unique_ptr<HttpStream> stream;
  };
  // `started` gets the stream before its answer is waited for, so that another thread may cancel.
  StatusOr<Opened> Open(HttpRequest request, std::string_view method, Duration patience,
                        const std::function<void(HttpStream*)>& started);

  // Ends everything with Cancelled, those who wait included.
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
  CondVar woken_;      // those who sleep: stopped_
  CondVar turn_free_;  // those who wait for one of max_in_flight: in_flight_, stopped_
  TokenBucket bucket_ ABSL_GUARDED_BY(mutex_);
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> warned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::kube
