// Checks how the server for probes and metrics handles arbitrary bytes from a connection. A buffer
// replaces the connection. The parser, and the function that determines the response, are those
// that server.cc uses.
//   - Nothing crashes, and the exchange ends.
//   - Every response is HTTP, with one of the statuses that the server is meant to return.
//   - The responses do not depend on the pieces in which the bytes arrive, except for the reason
//     given for a refusal. A token that is not a method is detected as soon as it is complete. A
//     head that is both malformed and too long is refused for the fault that is detected first.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core.hpp>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "operator/serve/exchange.h"
#include "runtime/base/check.h"

namespace tfjob::fuzz {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace asio = boost::asio;

// A SyncReadStream that returns at most `piece` bytes per read.
class Bytes {
 public:
  Bytes(std::string_view bytes, size_t piece) : bytes_(bytes), piece_(piece) {}

  template <typename Buffers>
  size_t read_some(const Buffers& buffers, beast::error_code& error) {
    const size_t size =
        asio::buffer_copy(buffers, asio::buffer(bytes_.data(), std::min(piece_, bytes_.size())));
    bytes_.remove_prefix(size);
    error = size == 0 ? beast::error_code(asio::error::eof) : beast::error_code();
    return size;
  }
  template <typename Buffers>
  size_t read_some(const Buffers& buffers) {
    beast::error_code error;
    const size_t size = read_some(buffers, error);
    ENFORCE(!error, "not called by the parser");
    return size;
  }

 private:
  std::string_view bytes_;
  const size_t piece_;
};

const std::map<std::string, serve::Handler>& Handlers() {
  static const std::map<std::string, serve::Handler> handlers = {
      {"/healthz", [](const std::string&) { return serve::Response{}; }},
      {"/echo", [](const std::string& query) { return serve::Response{.body = query}; }}};
  return handlers;
}

void CheckAnswer(const serve::Answer& answer, const std::string& text, bool head) {
  switch (answer.result_int()) {
    case 200:
    case 400:
    case 404:
    case 405:
    case 413:
    case 431:
      break;
    default:
      ENFORCE(false, "a status that the server does not give");
  }
  http::response_parser<http::string_body> parser;
  parser.skip(head);
  Bytes stream(text, text.size());
  beast::flat_buffer buffer;
  beast::error_code error;
  http::read(stream, buffer, parser, error);
  ENFORCE(!error, StrCat("a response must be HTTP: ", error.message()));
  ENFORCE(buffer.size() == 0, "a response must end where it says");
}

// Returns whether the parser rejected the request.
bool Refused(const serve::Answer& answer) {
  const http::status status = answer.result();
  return status == http::status::bad_request ||
         status == http::status::request_header_fields_too_large;
}

// Returns the concatenated responses to all requests. For a rejected request, the response is
// included without the reason.
std::string Exchange(std::string_view bytes, size_t piece) {
  Bytes stream(bytes, piece);
  beast::flat_buffer buffer{2 * serve::kMaxHead};
  std::string all;
  for (size_t requests = 0;; ++requests) {
    ENFORCE(requests <= bytes.size(), "every request takes some bytes");
    serve::RequestParser parser;
    serve::Limit(parser);
    beast::error_code error;
    http::read(stream, buffer, parser, error);
    if (error == http::error::end_of_stream) return all;
    const std::optional<serve::Answer> answer = serve::AnswerTo(parser, error, Handlers());
    if (!answer) return all;
    std::ostringstream text;
    text << *answer;
    CheckAnswer(*answer, text.str(), !error && parser.get().method() == http::verb::head);
    all += Refused(*answer) ? "refused" : text.str();
    if (!answer->keep_alive()) return all;
  }
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tfjob::fuzz::Exchange;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string answers = Exchange(bytes, size);
  for (const size_t piece : {size_t{1}, size_t{7}}) {
    ENFORCE(Exchange(bytes, piece) == answers, "the pieces must not matter");
  }
  return 0;
}
