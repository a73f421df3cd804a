#include "operator/cli/verbs/verb.h"

namespace tfjob::cli {

int ClusterVerb::Run(const Invocation& invocation) {
  const auto cluster = invocation.connect(invocation.cluster);
  if (!cluster.ok()) {
    view::PrintError(invocation.console, cluster.status());
    return view::kBadInput;
  }
  const int code = RunOn({**cluster, invocation.console, invocation.stop});
  const StopSource& stop = invocation.stop;
  return stop.requested() ? 128 + stop.signal() : code;
}

}  // namespace tfjob::cli
