#include "operator/cli/cluster_flags.h"

#include "operator/view/duration.h"

namespace tfjob::cli {
namespace {

constexpr char kSection[] = "Cluster";

}  // namespace

void ClusterFlagReader::AddTo(FlagSet& flags) {
  flags.Text("-n,--namespace", flags_.name_space, "Namespace (default: the context's)")
      .InSection(kSection)
      .Complete(CompleteWith::kNamespaces);
  flags.Text("--context", flags_.context, "Context of the kubeconfig (default: its current one)")
      .InSection(kSection);
  flags
      .Text("--kubeconfig", flags_.kubeconfig,
            "Kubeconfig file (default: $KUBECONFIG, ~/.kube/config, the pod's service account)")
      .InSection(kSection)
      .Complete(CompleteWith::kFiles);
  flags.Text("--as", flags_.as, "User to act as").InSection(kSection);
  flags.Repeated("--as-group", flags_.as_groups, "Group to act as; may be repeated")
      .InSection(kSection);
  flags
      .Text("--request-timeout", request_timeout_,
            "Time limit for one answer of the server, such as 5s; 0: no limit")
      .InSection(kSection);
}

StatusOr<ClusterFlags> ClusterFlagReader::Read() const {
  ClusterFlags flags = flags_;
  if (request_timeout_.empty()) return flags;
  const auto timeout = view::ParseDuration(request_timeout_);
  if (!timeout.ok()) return Annotate(timeout.status(), "--request-timeout");
  flags.request_timeout = *timeout;
  return flags;
}

Status CheckNoClusterFlags(const FlagSet& before, const std::string& verb) {
  for (const Flag& flag : before.flags()) {
    if (flag.section() != kSection || !flag.given()) continue;
    return InvalidArgument(flag.name(), ": ", verb, " does not use a cluster");
  }
  return OkStatus();
}

void SetClusterFlag(const Flag& flag, const std::string& value, ClusterFlags& cluster) {
  const std::string name = flag.name();
  if (name == "--namespace") cluster.name_space = value;
  if (name == "--context") cluster.context = value;
  if (name == "--kubeconfig") cluster.kubeconfig = value;
  if (name == "--as") cluster.as = value;
}

}  // namespace tfjob::cli
