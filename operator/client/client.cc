#include "operator/client/client.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/objects/custom_resource.h"
#include "operator/objects/metadata.h"
#include "operator/objects/packed_resource.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"

namespace tfjob::client {
namespace {

template <typename T>
StatusOr<Object> Shared(StatusOr<T> decoded) {
  if (!decoded.ok()) return decoded.status();
  return Object(std::make_shared<const T>(*std::move(decoded)));
}

}  // namespace

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
