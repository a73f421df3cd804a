// Reads the logs of containers from an API server (subresource pods/log).
#pragma once

#include "operator/cli/verbs/cluster.h"
#include "operator/kube/rest/rest_client.h"

namespace tfjob::cli {

class KubeLogs : public LogReader {
 public:
  // `rest` must outlive the reader.
  explicit KubeLogs(kube::RestClient& rest) : rest_(rest) {}

  Status Read(const LogRequest& request, const StopSource& stop,
              const std::function<bool(std::string_view)>& take) override;

 private:
  kube::RestClient& rest_;
};

// Returns the request target: "/api/v1/namespaces/ns/pods/p/log?container=c&follow=true".
std::string LogTarget(const LogRequest& request);

}  // namespace tfjob::cli
