// What an API server says when it refuses: metav1.Status, or whatever a proxy in between sent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/kube/rest/transport.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_view.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

struct ApiError {
  int code = 0;                     // HTTP's
  bool is_status = false;           // the server itself spoke, no proxy in between
  std::string reason;               // "AlreadyExists"; "" when no Status came
  std::string message;              // never empty
  std::string name;                 // details.name: the object that it is about
  std::vector<std::string> causes;  // details.causes[].reason
  std::optional<Duration> retry_after;

  bool HasCause(std::string_view reason) const;
  // The resourceVersion asked for is too old (410), or newer than what the server knows.
  bool expired() const { return code == 410; }
  bool too_new() const;
};

// Of any answer whose code is not 2xx.
ApiError ParseApiError(const HttpResponse& response);
// Of the object of a watch's ERROR event.
ApiError ParseApiError(const JsonView& status);

// The codes of operator/client/client.h; OutOfRange for 410.
Status ToStatus(const ApiError& error);

}  // namespace tfjob::kube
