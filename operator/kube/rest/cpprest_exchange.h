// One request and its answer on cpprestsdk: the state that the waiting caller and the network's
// thread share. Private to the transport.
//
// All of cpprestsdk runs on the one thread of its pool, cancellations included: with more threads,
// or with a cancellation from another one, its sockets are closed under operations in flight.
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
    // Unary: the whole body is kept, up to `max_bytes`, and only the end wakes the caller. Streams:
    // `max_bytes` wait for the reader, then the server waits.
    bool stream = false;
    size_t max_bytes = 0;
    // Makes the error of an exception of cpprestsdk.
    std::function<Status(std::exception_ptr)> translate;
    std::function<void()> on_end;  // once, when cpprestsdk is done with it; on its thread
  };
  explicit Exchange(Options options) : options_(std::move(options)) {}

  // Once.
  void Start(web::http::client::http_client& client, web::http::http_request request);

  // The whole answer, or nothing when it is not there at the deadline.
  std::optional<StatusOr<HttpResponse>> AwaitEnd(std::chrono::steady_clock::time_point deadline);
  // Of streams.
  std::optional<StatusOr<HttpResponse>> AwaitHead(std::chrono::steady_clock::time_point deadline);
  std::optional<StatusOr<std::string>> AwaitBytes(std::chrono::steady_clock::time_point deadline);

  // Ends it: waiting callers get `why` at once, the connection is closed soon.
  void Cancel(const Status& why);

  // Called by the body's stream buffer, on the pool's thread. The task is done when more may come.
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
  // The server waits for the reader: to be set to the count when it goes on.
  std::optional<pplx::task_completion_event<size_t>> paused_ ABSL_GUARDED_BY(mutex_);
  size_t paused_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Runs it on the pool's thread.
void PostToPool(std::function<void()> action);

}  // namespace tfjob::kube
