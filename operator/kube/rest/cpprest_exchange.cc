#include "operator/kube/rest/cpprest_exchange.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "absl/strings/numbers.h"

namespace tfjob::kube {
namespace {

namespace streams = concurrency::streams;
using web::http::http_response;
using SteadyTime = std::chrono::steady_clock::time_point;

// Receives a body from cpprestsdk, with one call per chunk and without a copy. Does not implement
// the other operations of a stream buffer.
class BodyBuffer : public streams::details::streambuf_state_manager<uint8_t> {
 public:
  explicit BodyBuffer(std::shared_ptr<Exchange> exchange)
      : streambuf_state_manager(std::ios_base::out), exchange_(std::move(exchange)) {}

  pplx::task<size_t> putn_nocopy(const uint8_t* bytes, size_t count) override {
    return exchange_->OnBytes(bytes, count);
  }

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return pos_type(off_type(-1)); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return pos_type(off_type(-1)); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return pos_type(off_type(-1));
  }
  bool acquire(uint8_t*&, size_t&) override { return false; }
  void release(uint8_t*, size_t) override {}

 protected:
  pplx::task<size_t> _putn(const uint8_t* bytes, size_t count) override {
    return exchange_->OnBytes(bytes, count);
  }
  pplx::task<int_type> _putc(uint8_t byte) override {
    return exchange_->OnBytes(&byte, 1).then([byte](size_t) { return int_type(byte); });
  }
  pplx::task<int_type> _bumpc() override { return Nothing(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return Nothing(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return Nothing(); }
  pplx::task<int_type> _ungetc() override { return Nothing(); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}

 private:
  static pplx::task<int_type> Nothing() { return pplx::task_from_result<int_type>(traits::eof()); }

  const std::shared_ptr<Exchange> exchange_;
};

// Returns "the text" for a header `299 - "the text" "date"`.
std::string WarningText(const std::string& header) {
  const size_t begin = header.find('"');
  if (begin == std::string::npos) return header;
  std::string text;
  for (size_t i = begin + 1; i < header.size() && header[i] != '"'; ++i) {
    if (header[i] == '\\' && i + 1 < header.size()) ++i;
    text += header[i];
  }
  return text;
}

HttpResponse HeadOf(const http_response& response) {
  HttpResponse head;
  head.code = response.status_code();
  const web::http::http_headers& headers = response.headers();
  if (const auto found = headers.find("Content-Type"); found != headers.end()) {
    head.content_type = found->second;
  }
  if (const auto found = headers.find("Content-Encoding"); found != headers.end()) {
    head.content_encoding = found->second == "identity" ? "" : found->second;
  }
  int64_t seconds = 0;
  if (const auto found = headers.find("Retry-After");
      found != headers.end() && absl::SimpleAtoi(found->second, &seconds) && seconds >= 0) {
    head.retry_after = std::chrono::seconds(std::min<int64_t>(seconds, 3600));
  }
  if (const auto found = headers.find("Warning"); found != headers.end()) {
    head.warnings.push_back(WarningText(found->second));
  }
  return head;
}

}  // namespace

void PostToPool(std::function<void()> action) {
  crossplat::threadpool::shared_instance().service().post(std::move(action));
}

void Exchange::Start(web::http::client::http_client& client, web::http::http_request request) {
  const auto self = shared_from_this();
  try {
    request.set_response_stream(
        streams::ostream(streams::streambuf<uint8_t>(std::make_shared<BodyBuffer>(self))));
    client.request(request, cancellation_.get_token())
        .then([self](pplx::task<http_response> answer) { self->OnHead(std::move(answer)); });
  } catch (...) {
    End(options_.translate(std::current_exception()));
  }
}

void Exchange::OnHead(pplx::task<http_response> answer) {
  const auto self = shared_from_this();
  try {
    const http_response response = answer.get();
    HttpResponse head = HeadOf(response);
    const utility::size64_t length = response.headers().content_length();
    {
      MutexLock lock(mutex_);
      head_ = std::move(head);
      if (!options_.stream && length > 0 && length <= options_.max_bytes) {
        body_.reserve(length + kReadPadding);
      }
      if (options_.stream) changed_.NotifyAll();
    }
    response.content_ready().then(
        [self](pplx::task<http_response> body) { self->OnBody(std::move(body)); });
  } catch (...) {
    End(options_.translate(std::current_exception()));
  }
}

void Exchange::OnBody(pplx::task<http_response> answer) {
  try {
    answer.get();
    End(OkStatus());
  } catch (...) {
    End(options_.translate(std::current_exception()));
  }
}

void Exchange::End(Status status) {
  {
    MutexLock lock(mutex_);
    if (finished_) return;
    finished_ = true;
    if (!end_) end_ = std::move(status);
    changed_.NotifyAll();
  }
  if (options_.on_end) options_.on_end();
}

pplx::task<size_t> Exchange::OnBytes(const uint8_t* bytes, size_t count) {
  MutexLock lock(mutex_);
  if (end_) return pplx::task_from_result(count);  // no caller is waiting any more
  const bool was_empty = body_.empty();
  body_.append(reinterpret_cast<const char*>(bytes), count);
  if (!options_.stream) {
    if (body_.size() <= options_.max_bytes) return pplx::task_from_result(count);
    const std::length_error why(
        StrCat("the answer is longer than the limit of ", options_.max_bytes, " bytes"));
    end_ = MarkTooLong(options_.translate(std::make_exception_ptr(why)));
    body_ = std::string();
    changed_.NotifyAll();
    return pplx::task_from_exception<size_t>(why);
  }
  if (was_empty) changed_.NotifyAll();
  if (body_.size() < options_.max_bytes) return pplx::task_from_result(count);
  paused_.emplace();
  paused_count_ = count;
  return pplx::create_task(*paused_);
}

void Exchange::Resume(size_t count) {
  if (!paused_) return;
  paused_->set(count);  // its continuation runs on the pool's thread
  paused_.reset();
}

void Exchange::Cancel(const Status& why) {
  {
    MutexLock lock(mutex_);
    if (!end_) end_ = why;
    Resume(paused_count_);
    changed_.NotifyAll();
    if (finished_) return;
  }
  PostToPool([self = shared_from_this()] { self->cancellation_.cancel(); });
}

std::optional<StatusOr<HttpResponse>> Exchange::AwaitEnd(SteadyTime deadline) {
  MutexLock lock(mutex_);
  while (!end_) {
    if (!changed_.WaitUntil(mutex_, deadline) && !end_) return std::nullopt;
  }
  if (!end_->ok()) return StatusOr<HttpResponse>(*end_);
  HttpResponse response = *std::move(head_);
  response.body = std::move(body_);
  return StatusOr<HttpResponse>(std::move(response));
}

std::optional<StatusOr<HttpResponse>> Exchange::AwaitHead(SteadyTime deadline) {
  MutexLock lock(mutex_);
  while (!head_ && !end_) {
    if (!changed_.WaitUntil(mutex_, deadline) && !head_ && !end_) return std::nullopt;
  }
  // If the response has broken off in the meantime, AwaitBytes reports this.
  const bool cancelled = end_ && end_->code() == StatusCode::kCancelled;
  if (!head_ || cancelled) return StatusOr<HttpResponse>(*end_);
  return StatusOr<HttpResponse>(*head_);
}

std::optional<StatusOr<std::string>> Exchange::AwaitBytes(SteadyTime deadline) {
  MutexLock lock(mutex_);
  const auto ready = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !body_.empty() || end_; };
  while (!ready()) {
    if (!changed_.WaitUntil(mutex_, deadline) && !ready()) return std::nullopt;
  }
  // A cancelled stream returns no more data. A stream that broke off returns the data that had
  // arrived before it returns the error.
  if (end_ && (body_.empty() || end_->code() == StatusCode::kCancelled)) {
    if (!end_->ok()) return StatusOr<std::string>(*end_);
    return StatusOr<std::string>(std::string());
  }
  std::string bytes = std::exchange(body_, {});
  Resume(paused_count_);
  bytes.reserve(bytes.size() + kReadPadding);
  return StatusOr<std::string>(std::move(bytes));
}

}  // namespace tfjob::kube
