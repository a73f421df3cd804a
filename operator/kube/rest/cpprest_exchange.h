// Contains the state of one cpprestsdk request and its response, which the waiting caller and the
// network thread share. Private to the transport.
//
// All of cpprestsdk, including cancellations, must run on the single thread of its pool. With more
// threads, or if another thread cancels, cpprestsdk closes sockets while operations on them are in
// progress.
#pragma once

#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "operator/kube/rest/transport.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Options {
    // If false, the whole body is kept, up to `max_bytes`, and the caller is woken only at the end.
    // If true, up to `max_bytes` are buffered for the reader; beyond that, the server has to wait.
    bool stream = false;
    size_t max_bytes = 0;
    // Converts an exception from cpprestsdk to an error.
    std::function<Status(std::exception_ptr)> translate;
    std::function<void()> on_end;  // called once, when cpprestsdk is done with the request
  };
  explicit Exchange(Options options) : options_(std::move(options)) {}

  // Sends the request. Must be called only once.
  void Start(web::http::client::http_client& client, web::http::http_request request);

  // Waits for the whole response and returns it; nullopt if it is not complete by the deadline.
  std::optional<StatusOr<HttpResponse>> AwaitEnd(std::chrono::steady_clock::time_point deadline);
  // Wait for the head (the status line and headers) or the next bytes of a stream. Return nullopt
  // if they have not arrived by the deadline.
  std::optional<StatusOr<HttpResponse>> AwaitHead(std::chrono::steady_clock::time_point deadline);
  std::optional<StatusOr<std::string>> AwaitBytes(std::chrono::steady_clock::time_point deadline);

  // Ends the exchange. Waiting callers return `why` immediately. The connection is closed soon
  // afterwards.
  void Cancel(const Status& why);

  // Called by the body's stream buffer on the pool's thread. The task completes when more bytes can
  // be accepted.
  pplx::task<size_t> OnBytes(const uint8_t* bytes, size_t count);

 private:
  void OnHead(pplx::task<web::http::http_response> answer);
  void OnBody(pplx::task<web::http::http_response> answer);
  void End(Status status);
  void Resume(size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  pplx::cancellation_token_source cancellation_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<HttpResponse> head_ ABSL_GUARDED_BY(mutex_);
  std::string body_ ABSL_GUARDED_BY(mutex_);
  std::optional<Status> end_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // on_end was called
  // Set while the server has to wait for the reader. To resume the transfer, complete the event
  // with the count.
  std::optional<pplx::task_completion_event<size_t>> paused_ ABSL_GUARDED_BY(mutex_);
  size_t paused_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Runs `action` on the pool's thread.
void PostToPool(std::function<void()> action);

}  // namespace tfjob::kube
