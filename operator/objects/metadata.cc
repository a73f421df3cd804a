#include "operator/objects/metadata.h"

#include <nlohmann/json.hpp>

#include "operator/objects/fields.h"
#include "runtime/base/json_view.h"

namespace tfjob::objects {
namespace {

template <typename Field>
StatusOr<OwnerReference> ReadOwnerReference(const Field& field) {
  OwnerReference owner;
  if (!field.IsObject()) return field.Mismatch("an object");
  RETURN_IF_ERROR(Read(field["apiVersion"], owner.api_version));
  RETURN_IF_ERROR(Read(field["kind"], owner.kind));
  RETURN_IF_ERROR(Read(field["name"], owner.name));
  RETURN_IF_ERROR(Read(field["uid"], owner.uid));
  RETURN_IF_ERROR(Read(field["controller"], owner.controller));
  RETURN_IF_ERROR(Read(field["blockOwnerDeletion"], owner.block_owner_deletion));
  return owner;
}

template <typename Field>
StatusOr<ObjectMeta> ReadObjectMeta(const Field& metadata) {
  ObjectMeta meta;
  if (!metadata.present()) return meta;
  if (!metadata.IsObject()) return metadata.Mismatch("an object");
  RETURN_IF_ERROR(Read(metadata["name"], meta.name));
  RETURN_IF_ERROR(Read(metadata["namespace"], meta.name_space));
  RETURN_IF_ERROR(Read(metadata["uid"], meta.uid));
  RETURN_IF_ERROR(Read(metadata["resourceVersion"], meta.resource_version));
  RETURN_IF_ERROR(Read(metadata["generation"], meta.generation));
  RETURN_IF_ERROR(Read(metadata["labels"], meta.labels));
  RETURN_IF_ERROR(Read(metadata["annotations"], meta.annotations));
  ASSIGN_OR_RETURN(const auto owners, metadata["ownerReferences"].Elements());
  for (const Field& field : owners) {
    ASSIGN_OR_RETURN(OwnerReference owner, ReadOwnerReference(field));
    meta.owner_references.push_back(std::move(owner));
  }
  RETURN_IF_ERROR(Read(metadata["finalizers"], meta.finalizers));
  RETURN_IF_ERROR(Read(metadata["creationTimestamp"], meta.creation_timestamp));
  RETURN_IF_ERROR(Read(metadata["deletionTimestamp"], meta.deletion_timestamp));
  RETURN_IF_ERROR(Read(metadata["deletionGracePeriodSeconds"], meta.deletion_grace_period_seconds));
  return meta;
}

}  // namespace

Json ToJson(const OwnerReference& owner) {
  Json json = {{"apiVersion", owner.api_version},
               {"kind", owner.kind},
               {"name", owner.name},
               {"uid", owner.uid}};
  if (owner.controller) json["controller"] = true;
  if (owner.block_owner_deletion) json["blockOwnerDeletion"] = true;
  return json;
}

const OwnerReference* ObjectMeta::controller() const {
  for (const OwnerReference& owner : owner_references) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

bool ObjectMeta::IsControlledBy(std::string_view uid) const {
  const OwnerReference* owner = controller();
  return owner != nullptr && owner->uid == uid;
}

StatusOr<ObjectMeta> ParseObjectMeta(const JsonField& metadata) {
  return ReadObjectMeta(metadata);
}

StatusOr<ObjectMeta> ParseObjectMeta(const JsonView& metadata) {
  return ReadObjectMeta(metadata);
}

Json ToJson(const ObjectMeta& metadata) {
  Json json = Json::object();
  const auto set = [&json](const char* key, const auto& value) {
    if (!value.empty()) json[key] = value;
  };
  set("name", metadata.name);
  set("namespace", metadata.name_space);
  set("uid", metadata.uid);
  set("resourceVersion", metadata.resource_version);
  if (metadata.generation != 0) json["generation"] = metadata.generation;
  for (const auto& [key, value] : metadata.labels) json["labels"][std::string(key)] = value;
  set("annotations", metadata.annotations);
  for (const OwnerReference& owner : metadata.owner_references) {
    json["ownerReferences"].push_back(ToJson(owner));
  }
  set("finalizers", metadata.finalizers);
  set("creationTimestamp", FormatTime(metadata.creation_timestamp));
  if (metadata.deletion_timestamp) {
    json["deletionTimestamp"] = FormatTime(*metadata.deletion_timestamp);
  }
  if (metadata.deletion_grace_period_seconds) {
    json["deletionGracePeriodSeconds"] = *metadata.deletion_grace_period_seconds;
  }
  return json;
}

}  // namespace tfjob::objects
