#include "operator/serve/exchange.h"

#include <utility>

namespace tfjob::serve {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

using Request = http::request<http::empty_body>;

Answer Plain(http::status status, std::string body) {
  Answer answer;
  answer.result(status);
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  answer.set(http::field::cache_control, "no-store");
  answer.body() = std::move(body);
  return answer;
}

Answer Handle(const Request& request, const std::map<std::string, Handler>& handlers) {
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    Answer answer = Plain(http::status::method_not_allowed, "only GET and HEAD\n");
    answer.set(http::field::allow, "GET, HEAD");
    return answer;
  }
  const std::string target(request.target());
  const size_t question = target.find('?');
  const auto handler = handlers.find(target.substr(0, question));
  if (handler == handlers.end()) return Plain(http::status::not_found, "no such path\n");
  Response response =
      handler->second(question == std::string::npos ? "" : target.substr(question + 1));
  Answer answer =
      Plain(http::int_to_status(static_cast<unsigned>(response.status)), std::move(response.body));
  answer.set(http::field::content_type, response.content_type);
  return answer;
}

// Returns a response with this status and body, after which the connection is closed.
Answer Refuse(http::status status, std::string body) {
  Answer answer = Plain(status, std::move(body));
  answer.keep_alive(false);
  answer.prepare_payload();
  return answer;
}

}  // namespace

void Limit(RequestParser& parser) {
  parser.header_limit(kMaxHead);
}

std::optional<Answer> AnswerTo(const RequestParser& parser, beast::error_code error,
                               const std::map<std::string, Handler>& handlers) {
  if (error == http::error::header_limit) {
    return Refuse(http::status::request_header_fields_too_large, "the head is too large\n");
  }
  if (error == http::error::unexpected_body) {
    return Refuse(http::status::payload_too_large, "no body is expected\n");
  }
  if (error.category() == http::make_error_code(http::error::bad_method).category()) {
    return Refuse(http::status::bad_request, error.message() + "\n");
  }
  if (error) return std::nullopt;
  const Request& request = parser.get();
  Answer answer = Handle(request, handlers);
  answer.version(request.version());
  answer.keep_alive(request.keep_alive());
  answer.prepare_payload();
  if (request.method() == http::verb::head) answer.body().clear();  // Content-Length is kept
  return answer;
}

}  // namespace tfjob::serve
