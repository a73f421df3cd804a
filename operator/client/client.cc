#include "operator/client/client.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace tfjob::client {
namespace {

template <typename T>
StatusOr<Object> Shared(StatusOr<T> decoded) {
  if (!decoded.ok()) return decoded.status();
  return Object(std::make_shared<const T>(*std::move(decoded)));
}

}  // namespace

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
    case Kind::kLease:
      return "coordination.k8s.io/v1";
  }
  return "";
}

bool IsClusterScoped(Kind kind) {
  return kind == Kind::kNode;
}

std::string ToString(const Key& key) {
  if (IsClusterScoped(key.kind)) return StrCat(Name(key.kind), " ", key.name);
  return StrCat(Name(key.kind), " ", key.name_space, "/", key.name);
}

const objects::ObjectMeta& MetadataOf(const Object& object) {
  return std::visit([](const auto& held) -> const objects::ObjectMeta& { return held->metadata; },
                    object);
}

StatusOr<Object> Decode(Kind kind, Json object) {
  switch (kind) {
    case Kind::kPod:
      return Shared(objects::ParsePod(object));
    case Kind::kService:
      return Shared(objects::ParseService(object));
    default:
      return Shared(objects::ParseCustomResource(std::move(object)));
  }
}

bool Matches(const LabelSelector& selector, const objects::ObjectMeta& metadata) {
  for (const auto& [key, value] : selector) {
    const std::string_view label = metadata.labels.Find(key);
    if (label.data() == nullptr || label != value) return false;
  }
  return true;
}

}  // namespace tfjob::client
