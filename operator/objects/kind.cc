#include "operator/objects/kind.h"

namespace tfjob::objects {

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kTFJob:
      return "TFJob";
    case Kind::kPod:
      return "Pod";
    case Kind::kService:
      return "Service";
    case Kind::kConfigMap:
      return "ConfigMap";
    case Kind::kEvent:
      return "Event";
    case Kind::kPodGroup:
    case Kind::kCoschedulingPodGroup:
    case Kind::kNativePodGroup:
      return "PodGroup";
    case Kind::kWorkload:
      return "Workload";
    case Kind::kNetworkPolicy:
      return "NetworkPolicy";
    case Kind::kLease:
      return "Lease";
    case Kind::kNode:
      return "Node";
  }
  return "";
}

std::string_view NewestApiVersion(Kind kind) {
  switch (kind) {
    case Kind::kTFJob:
      return "kubeflow.org/v1";
    case Kind::kPod:
    case Kind::kService:
    case Kind::kConfigMap:
    case Kind::kEvent:
    case Kind::kNode:
      return "v1";
    case Kind::kPodGroup:
      return "scheduling.volcano.sh/v1beta1";
    case Kind::kCoschedulingPodGroup:
      return "scheduling.x-k8s.io/v1alpha1";
    case Kind::kWorkload:
    case Kind::kNativePodGroup:
      return "scheduling.k8s.io/v1beta1";
    case Kind::kNetworkPolicy:
      return "networking.k8s.io/v1";
    case Kind::kLease:
      return "coordination.k8s.io/v1";
  }
  return "";
}

bool IsClusterScoped(Kind kind) {
  return kind == Kind::kNode;
}

bool IsPodGroup(Kind kind) {
  return kind == Kind::kPodGroup || kind == Kind::kCoschedulingPodGroup ||
         kind == Kind::kNativePodGroup;
}

bool IsGangKind(Kind kind) {
  return kind == Kind::kWorkload || IsPodGroup(kind);
}

bool IsOnePerJob(Kind kind) {
  return kind == Kind::kNetworkPolicy || IsGangKind(kind);
}

}  // namespace tfjob::objects
