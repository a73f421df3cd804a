// Defines metav1.ObjectMeta, which every Kubernetes object has, and metav1.OwnerReference.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/objects/label_map.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob {
class JsonView;
}  // namespace tfjob

namespace tfjob::objects {

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool block_owner_deletion = false;

  bool operator==(const OwnerReference&) const = default;
};

struct ObjectMeta {
  std::string name;
  std::string name_space;  // "" for cluster-scoped objects
  std::string uid;
  std::string resource_version;  // opaque: compare for equality only
  int64_t generation = 0;
  LabelMap labels;
  std::map<std::string, std::string> annotations;
  std::vector<OwnerReference> owner_references;
  std::vector<std::string> finalizers;
  Time creation_timestamp;  // whole seconds
  // The time at which the grace period ends. Set while the object is terminating.
  std::optional<Time> deletion_timestamp;
  std::optional<int64_t> deletion_grace_period_seconds;

  bool terminating() const { return deletion_timestamp.has_value(); }
  // Returns the owner reference with controller: true; nullptr if there is none.
  const OwnerReference* controller() const;
  bool IsControlledBy(std::string_view uid) const;
  // Returns the label's value, or "".
  std::string_view label(std::string_view key) const { return labels.Find(key); }

  bool operator==(const ObjectMeta&) const = default;
};

// Parses the member "metadata" of an object. If the member is absent, all fields are empty. Unknown
// members are ignored. Returns InvalidArgument for a wrong type or for text that is not UTF-8; the
// error contains the path only if `metadata` is a JsonField.
StatusOr<ObjectMeta> ParseObjectMeta(const JsonField& metadata);
StatusOr<ObjectMeta> ParseObjectMeta(const JsonView& metadata);
// Return an object with the members that are set.
Json ToJson(const ObjectMeta& metadata);
Json ToJson(const OwnerReference& owner);

}  // namespace tfjob::objects
