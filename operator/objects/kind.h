// Lists the kinds of objects that the operator reads and writes.
#pragma once

#include <string_view>

namespace tfjob::objects {

enum class Kind {
  kTFJob,
  kPod,
  kService,
  kConfigMap,
  kEvent,                 // core/v1
  kPodGroup,              // Volcano's
  kCoschedulingPodGroup,  // that of scheduler-plugins
  kWorkload,              // Kubernetes' own (scheduling.k8s.io), like the next kind
  kNativePodGroup,
  kNetworkPolicy,  // networking.k8s.io
  kLease,
  kNode,
};
// Returns the "kind" of the objects, such as "Pod". All three kinds of pod group have the same
// name.
std::string_view Name(Kind kind);
// Returns true if objects of this kind have no namespace. This is true only of nodes.
bool IsClusterScoped(Kind kind);
// Returns whether the kind is any scheduler's pod group.
bool IsPodGroup(Kind kind);
// Returns true for the kinds that make up a gang: pod groups and workloads. A cluster may lack
// them.
bool IsGangKind(Kind kind);
// Returns true for gang kinds and network policies: the operator creates at most one such object
// per job, before the job's services and pods.
bool IsOnePerJob(Kind kind);
// Returns the newest apiVersion of the kind that this project supports, such as
// "scheduling.k8s.io/v1beta1". A server may have only an older version (client::Discovery).
std::string_view NewestApiVersion(Kind kind);

}  // namespace tfjob::objects
