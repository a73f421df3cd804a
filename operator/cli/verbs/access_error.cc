#include "operator/cli/verbs/access_error.h"

namespace tfjob::cli {
namespace {

// Returns whether the message says that the server does not serve the resource at all, rather than
// that one object does not exist.
bool LacksResource(std::string_view message) {
  return message.find("could not find the requested resource") != std::string_view::npos ||
         message.find("does not serve this path") != std::string_view::npos;
}

std::string MessageFor(const Status& status, const std::string& server, std::string_view what) {
  const std::string_view message = Message(status);
  if (LacksResource(message)) {
    return StrCat(server, " does not serve TFJobs (", message,
                  "): install the operator's CRDs, see docs/installing.md");
  }
  switch (status.code()) {
    case StatusCode::kNotFound:
      return StrCat("there is no ", what, " on ", server, "; tfjob get -A lists all TFJobs");
    case StatusCode::kPermissionDenied:
      return StrCat(server, " refuses access to ", what, ": ", message,
                    "; request the permission, or choose another --context or --as");
    case StatusCode::kUnauthenticated:
      return StrCat(server, " does not accept the credentials: ", message,
                    "; renew them, or choose another --context or --kubeconfig");
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return StrCat(server, " does not answer: ", message,
                    "; is it running, and is it the right server (--context, --kubeconfig)?");
    case StatusCode::kAborted:
      return StrCat(what, " was changed by another client at the same time: ", message,
                    "; try again");
    default:
      return StrCat(what, " on ", server, ": ", message);
  }
}

}  // namespace

Status Explain(const Status& status, const Cluster& cluster, std::string_view what) {
  if (status.ok()) return status;
  return Status(status.code(), MessageFor(status, cluster.server(), what));
}

}  // namespace tfjob::cli
