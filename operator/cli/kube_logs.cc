#include "operator/cli/kube_logs.h"

#include <algorithm>
#include <utility>

#include "operator/kube/client/resource.h"
#include "operator/kube/rest/api_error.h"

namespace tfjob::cli {
namespace {

constexpr int kNoContent = 204;  // the API server's response if a pod has no node
constexpr Duration kTick = 200ms;
constexpr Duration kPatience = 30s;  // for the response head, and for each further piece of a log
                                     // that is not followed

// Reads the body of an error response. Stops after about 64 KiB, which is more than a user
// would read.
std::string WholeBody(kube::HttpStream& stream) {
  constexpr size_t kEnough = size_t{1} << 16;
  std::string body;
  while (body.size() < kEnough) {
    const auto piece = stream.Read(kPatience);
    if (!piece.ok() || piece->empty()) break;
    body += *piece;
  }
  return body;
}

}  // namespace

std::string LogTarget(const LogRequest& request) {
  kube::Query query;
  query.Add("container", request.container);
  if (request.follow) query.Add("follow", "true");
  if (request.previous) query.Add("previous", "true");
  if (request.timestamps) query.Add("timestamps", "true");
  if (request.tail_lines) query.Add("tailLines", StrCat(*request.tail_lines));
  if (request.since_time) {
    query.Add("sinceTime", FormatTime(*request.since_time));
  } else if (request.since) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*request.since).count();
    query.Add("sinceSeconds", StrCat(std::max<int64_t>(1, seconds)));
  }
  const client::Key pod{objects::Kind::kPod, request.name_space, request.pod};
  return kube::ObjectPath(pod, "v1", "log") + query.text();
}

Status KubeLogs::Read(const LogRequest& request, const StopSource& stop,
                      const std::function<bool(std::string_view)>& take) {
  ASSIGN_OR_RETURN(auto opened, rest_.Open({.method = "GET", .target = LogTarget(request)}, "GET",
                                           kPatience, [](kube::HttpStream*) {}));
  if (opened.head.code == kNoContent) {
    return FailedPrecondition("it has no node yet, so it has no log");
  }
  if (opened.head.code != 200) {
    opened.head.body = WholeBody(*opened.stream);
    return kube::ToStatus(kube::ParseApiError(opened.head));
  }
  Duration silent{0};
  while (!stop.requested()) {
    const auto piece = opened.stream->Read(kTick);
    if (absl::IsDeadlineExceeded(piece.status())) {
      silent += kTick;
      if (!request.follow && silent >= kPatience) return piece.status();
      continue;
    }
    if (!piece.ok()) return piece.status();
    if (piece->empty() || !take(*piece)) break;
    silent = Duration::zero();
  }
  return OkStatus();
}

}  // namespace tfjob::cli
