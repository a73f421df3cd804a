#include "operator/kube/rest/rest_client.h"

#include <algorithm>
#include <utility>

#include "operator/kube/rest/api_error.h"
#include "runtime/base/log.h"

namespace tfjob::kube {
namespace {

using SteadyClock = std::chrono::steady_clock;

const Logger kRestLog("kube");

constexpr int kMaxRetries = 10;
constexpr Duration kDefaultPatience = 1s;  // for a 429 without Retry-After
constexpr size_t kMaxWarnings = 100;       // at most this many distinct warnings are logged

Duration Since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<Duration>(SteadyClock::now() - start);
}
Duration Until(SteadyClock::time_point deadline) {
  return std::chrono::duration_cast<Duration>(deadline - SteadyClock::now());
}

Status Stopped() {
  return Cancelled("the client was stopped");
}

// Returns how long to wait before a retry if the server requests a retry; otherwise, nullopt. A 429
// requests a retry even if it has no Retry-After.
std::optional<Duration> AskedPatience(const ApiError& error) {
  if (error.code == 429) return error.retry_after.value_or(kDefaultPatience);
  if (error.code >= 500) return error.retry_after;
  return std::nullopt;
}

}  // namespace

RestClient::RestClient(std::unique_ptr<Transport> transport,
                       std::shared_ptr<Credentials> credentials, RestOptions options)
    : transport_(std::move(transport)),
      credentials_(std::move(credentials)),
      options_(std::move(options)),
      bucket_(options_.qps, options_.burst) {}

void RestClient::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    woken_.NotifyAll();
    turn_free_.NotifyAll();
  }
  transport_->Stop();
}

Status RestClient::Sleep(Duration time) {
  const auto until = SteadyClock::now() + time;
  MutexLock lock(mutex_);
  while (!stopped_ && SteadyClock::now() < until) woken_.WaitUntil(mutex_, until);
  return stopped_ ? Stopped() : OkStatus();
}

Status RestClient::AwaitTurn(SteadyClock::time_point deadline, Duration& waited) {
  const auto start = SteadyClock::now();
  std::optional<Duration> wait;
  {
    MutexLock lock(mutex_);
    wait = bucket_.Take(RealClock().Monotonic(), Until(deadline));
  }
  if (!wait) {
    return ResourceExhausted("the client's own limit of ", options_.qps,
                             " calls per second leaves no turn within the deadline of ",
                             FormatDuration(options_.deadline));
  }
  if (*wait > Duration(0)) RETURN_IF_ERROR(Sleep(*wait));
  MutexLock lock(mutex_);
  while (in_flight_ >= options_.max_in_flight && !stopped_) {
    if (!turn_free_.WaitUntil(mutex_, deadline) && in_flight_ >= options_.max_in_flight) {
      return ResourceExhausted(options_.max_in_flight, " calls are in progress and none has ended");
    }
  }
  if (stopped_) return Stopped();
  ++in_flight_;
  waited = Since(start);
  return OkStatus();
}

void RestClient::EndTurn() {
  MutexLock lock(mutex_);
  --in_flight_;
  turn_free_.NotifyOne();
}

bool RestClient::MaySend(const HttpRequest& request) const {
  return request.method == "GET" || !options_.may_write || options_.may_write();
}

RestClient::Attempt RestClient::Try(const HttpRequest& request, SteadyClock::time_point deadline,
                                    bool retry) {
  RestCall call;
  call.method = request.method;
  call.host = options_.host;
  call.retry = retry;
  call.request_bytes = request.body.size();
  StatusOr<RequestCredentials> credentials = credentials_->Get();
  if (!credentials.ok()) return {credentials.status(), {}};
  if (Status turn = AwaitTurn(deadline, call.limiter_wait); !turn.ok()) return {turn, {}};
  if (!MaySend(request)) {
    EndTurn();
    return {FailedPrecondition("this process is not the leader (any more)"), {}};
  }
  const auto start = SteadyClock::now();
  Attempt attempt{transport_->Send(request, *credentials, std::max(Until(deadline), Duration(0))),
                  *std::move(credentials)};
  EndTurn();
  call.duration = Since(start);
  if (attempt.response.ok()) {
    call.code = attempt.response->code;
    call.response_bytes = attempt.response->body.size();
    LogWarnings(*attempt.response);
  }
  if (options_.observer != nullptr) options_.observer->OnCall(call);
  return attempt;
}

StatusOr<HttpResponse> RestClient::Call(HttpRequest request) {
  const auto deadline = SteadyClock::now() + options_.deadline;
  bool renewed = false;
  for (int retries = 0;; ++retries) {
    Attempt attempt = Try(request, deadline, retries > 0);
    RETURN_IF_ERROR(attempt.response.status());
    HttpResponse& response = *attempt.response;
    if (response.code >= 200 && response.code < 300) {
      if (response.content_encoding.empty()) return std::move(response);
      return Unavailable("the answer is compressed (", response.content_encoding,
                         "), which was not requested; is there a proxy in between?");
    }
    const ApiError error = ParseApiError(response);
    if (error.code == 401 && !renewed) {
      renewed = true;
      credentials_->Unauthorized(attempt.credentials);
      continue;
    }
    const std::optional<Duration> patience = AskedPatience(error);
    if (!patience || retries >= kMaxRetries || *patience >= Until(deadline)) return ToStatus(error);
    RETURN_IF_ERROR(Sleep(*patience));
  }
}

StatusOr<RestClient::Opened> RestClient::Open(HttpRequest request, std::string_view method,
                                              Duration patience,
                                              const std::function<void(HttpStream*)>& started) {
  ASSIGN_OR_RETURN(const RequestCredentials credentials, credentials_->Get());
  RestCall call;
  call.method = method;
  call.host = options_.host;
  const auto start = SteadyClock::now();
  Opened opened;
  ASSIGN_OR_RETURN(opened.stream, transport_->Open(std::move(request), credentials));
  started(opened.stream.get());
  StatusOr<HttpResponse> head = opened.stream->Head(patience);
  call.duration = Since(start);
  if (head.ok()) {
    call.code = head->code;
    LogWarnings(*head);
    if (head->code == 401) credentials_->Unauthorized(credentials);
  }
  if (options_.observer != nullptr) options_.observer->OnCall(call);
  if (!head.ok()) {
    started(nullptr);
    return head.status();
  }
  opened.head = *std::move(head);
  return opened;
}

void RestClient::LogWarnings(const HttpResponse& response) {
  for (const std::string& warning : response.warnings) {
    {
      MutexLock lock(mutex_);
      if (warned_.size() >= kMaxWarnings || !warned_.insert(warning).second) continue;
    }
    kRestLog.Warning("warning from the API server", {{"warning", warning}});
  }
}

}  // namespace tfjob::kube
