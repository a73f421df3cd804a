// Implements a Transport that gets its responses from a function in the same process, for tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/rest/transport.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {

struct FakeAnswer {
  enum class End { kClean, kBroken, kSilent };

  HttpResponse response;            // the body is for Send(), and for streams whose code is not 200
  std::vector<std::string> pieces;  // for streams with code 200
  End end = End::kClean;            // for streams; kSilent: no more data until cancelled
};

inline FakeAnswer Answer(int code, std::string body) {
  FakeAnswer answer;
  answer.response.code = code;
  answer.response.body = std::move(body);
  return answer;
}
inline FakeAnswer StreamOf(std::vector<std::string> pieces,
                           FakeAnswer::End end = FakeAnswer::End::kSilent) {
  FakeAnswer answer = Answer(200, "");
  answer.pieces = std::move(pieces);
  answer.end = end;
  return answer;
}

class FakeTransport : public Transport {
 public:
  using Server = std::function<FakeAnswer(const HttpRequest&)>;
  explicit FakeTransport(Server server) : server_(std::move(server)) {}

  StatusOr<HttpResponse> Send(HttpRequest request, const RequestCredentials&, Duration) override {
    HttpResponse response = server_(request).response;
    const size_t limit = request.max_response_bytes;
    if (limit > 0 && response.body.size() > limit) return MarkTooLong(Unavailable("too long"));
    return response;
  }
  StatusOr<std::unique_ptr<HttpStream>> Open(HttpRequest request,
                                             const RequestCredentials&) override {
    FakeAnswer answer = server_(request);
    if (!answer.response.body.empty()) answer.pieces = {answer.response.body};
    return std::unique_ptr<HttpStream>(new Stream(std::move(answer)));
  }
  void Stop() override {}

 private:
  class Stream : public HttpStream {
   public:
    explicit Stream(FakeAnswer answer) : answer_(std::move(answer)) {}

    StatusOr<HttpResponse> Head(Duration) override {
      HttpResponse head = answer_.response;
      head.body.clear();
      return head;
    }
    StatusOr<std::string> Read(Duration timeout) override {
      if (next_ < answer_.pieces.size()) {
        std::string piece = answer_.pieces[next_++];
        piece.reserve(piece.size() + kReadPadding);
        return piece;
      }
      if (answer_.end == FakeAnswer::End::kClean) return std::string();
      if (answer_.end == FakeAnswer::End::kBroken) return Unavailable("the stream broke");
      const auto deadline = std::chrono::steady_clock::now() + timeout;
      MutexLock lock(mutex_);
      while (!cancelled_ && changed_.WaitUntil(mutex_, deadline)) {
      }
      if (cancelled_) return Cancelled("cancelled");
      return DeadlineExceeded("silent");
    }
    void Cancel() override {
      MutexLock lock(mutex_);
      cancelled_ = true;
      changed_.NotifyAll();
    }

   private:
    const FakeAnswer answer_;
    size_t next_ = 0;
    Mutex mutex_;
    CondVar changed_;
    bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  };

  const Server server_;
};

}  // namespace tfjob::kube
