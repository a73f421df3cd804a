#include "operator/kube/rest/api_error.h"

#include <algorithm>
#include <utility>

namespace tfjob::kube {
namespace {

constexpr size_t kMaxQuoted = 300;

// Returns the beginning of a body that is not a Status, as printable text on one line.
std::string Quote(std::string_view body) {
  std::string text;
  for (const char c : body.substr(0, kMaxQuoted)) {
    const bool space = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (space) {
      if (!text.empty() && text.back() != ' ') text += ' ';
    } else {
      text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  while (!text.empty() && !IsUtf8(text)) text.pop_back();
  return text;
}

std::string StringOf(const JsonView& field) {
  return field.String().value_or("");
}

StatusCode CodeOf(const ApiError& error) {
  switch (error.code) {
    case 401:
      return StatusCode::kUnauthenticated;
    case 403:
      return error.HasCause("NamespaceTerminating") ? StatusCode::kFailedPrecondition
                                                    : StatusCode::kPermissionDenied;
    case 404:
      // A 404 without the name of an object means that the server does not have this path, that is,
      // this resource.
      return error.name.empty() ? StatusCode::kUnavailable : StatusCode::kNotFound;
    case 409:
      return error.reason == "AlreadyExists" ? StatusCode::kAlreadyExists : StatusCode::kAborted;
    case 410:
      return StatusCode::kOutOfRange;
    case 429:
      return StatusCode::kResourceExhausted;
    case 503:
      return StatusCode::kUnavailable;
    case 504:
      return StatusCode::kDeadlineExceeded;
    default:
      if (error.code >= 400 && error.code < 500) return StatusCode::kInvalidArgument;
      return error.code >= 500 && error.is_status ? StatusCode::kInternal
                                                  : StatusCode::kUnavailable;
  }
}

}  // namespace

bool ApiError::HasCause(std::string_view wanted) const {
  return std::find(causes.begin(), causes.end(), wanted) != causes.end();
}

bool ApiError::too_new() const {
  return HasCause("ResourceVersionTooLarge") ||
         message.find("Too large resource version") != std::string::npos;
}

ApiError ParseApiError(const JsonView& status) {
  ApiError error;
  error.is_status = true;
  error.code = status["code"].Int32().value_or(500);
  error.reason = StringOf(status["reason"]);
  error.message = StringOf(status["message"]);
  const JsonView details = status["details"];
  error.name = StringOf(details["name"]);
  const auto causes = details["causes"].Elements();
  if (causes.ok()) {
    for (const JsonView& cause : *causes) error.causes.push_back(StringOf(cause["reason"]));
  }
  const int32_t seconds = details["retryAfterSeconds"].Int32().value_or(0);
  if (seconds > 0) error.retry_after = std::chrono::seconds(seconds);
  if (error.message.empty()) {
    error.message = error.reason.empty() ? "no message" : error.reason;
  }
  return error;
}

ApiError ParseApiError(const HttpResponse& response) {
  ApiError error;
  JsonDocument document;
  StatusOr<ApiError> protobuf = ParseApiErrorProtobuf(response.body);
  const StatusOr<JsonView> body = document.Parse(response.body);
  if (protobuf.ok()) {
    error = *std::move(protobuf);
  } else if (body.ok() && (*body)["kind"].String().value_or("") == "Status") {
    error = ParseApiError(*body);
  } else if (response.code == 404) {
    error.message =
        "the server does not serve this path; is the CustomResourceDefinition installed?";
  } else if (response.code >= 300 && response.code < 400) {
    error.message = StrCat("HTTP ", response.code, ", a redirect, which is not followed");
  } else {
    const std::string quoted = Quote(response.body);
    error.message = StrCat("HTTP ", response.code, quoted.empty() ? "" : ": ", quoted);
  }
  error.code = response.code;
  if (response.retry_after) error.retry_after = response.retry_after;
  return error;
}

Status ToStatus(const ApiError& error) {
  return Status(CodeOf(error), error.message);
}

}  // namespace tfjob::kube
