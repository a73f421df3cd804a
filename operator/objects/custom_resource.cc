#include "operator/objects/custom_resource.h"

#include <nlohmann/json.hpp>

#include "operator/objects/fields.h"

namespace tfjob::objects {

StatusOr<CustomResource> ParseCustomResource(Json object) {
  const JsonField root(object);
  if (!object.is_object()) return root.Mismatch("an object");
  CustomResource resource;
  RETURN_IF_ERROR(Read(root["apiVersion"], resource.api_version));
  RETURN_IF_ERROR(Read(root["kind"], resource.kind));
  ASSIGN_OR_RETURN(resource.metadata, ParseObjectMeta(root["metadata"]));
  resource.object = std::make_shared<const Json>(std::move(object));
  return resource;
}

}  // namespace tfjob::objects
