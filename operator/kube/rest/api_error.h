// Describes an error response: a metav1.Status from the API server, or the response of a proxy.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/rest/transport.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_view.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

struct ApiError {
  int code = 0;                     // HTTP status code
  bool is_status = false;           // the body is a Status, so the server sent it, not a proxy
  std::string reason;               // "AlreadyExists"; "" if there was no Status
  std::string message;              // never empty
  std::string name;                 // details.name: the name of the object
  std::vector<std::string> causes;  // details.causes[].reason
  std::optional<Duration> retry_after;

  bool HasCause(std::string_view reason) const;
  // Return whether the requested resourceVersion is too old (410), or newer than any that the
  // server knows.
  bool expired() const { return code == 410; }
  bool too_new() const;
};

// Parses a response whose code is not 2xx.
ApiError ParseApiError(const HttpResponse& response);
// Parses the object of an ERROR event in a watch.
ApiError ParseApiError(const JsonView& status);
// Parses a Status in its envelope (envelope.h), from a response or from an ERROR event. Returns
// InvalidArgument for any other input.
StatusOr<ApiError> ParseApiErrorProtobuf(std::string_view bytes);

// Converts an API error to a Status with its message. The code is one of those listed in
// operator/client/client.h, or OutOfRange for a 410.
Status ToStatus(const ApiError& error);

}  // namespace tfjob::kube
