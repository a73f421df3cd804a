#include "operator/objects/service.h"

#include <nlohmann/json.hpp>

#include "operator/objects/fields.h"
#include "runtime/base/json_view.h"

namespace tfjob::objects {

namespace {

template <typename Field>
StatusOr<Service> ReadService(const Field& root) {
  if (!root.IsObject()) return root.Mismatch("a Service object");
  Service service;
  ASSIGN_OR_RETURN(service.metadata, ParseObjectMeta(root["metadata"]));
  return service;
}

}  // namespace

StatusOr<Service> ParseService(const Json& object) {
  return ReadService(JsonField(object));
}

StatusOr<Service> ParseService(const JsonView& object) {
  return ReadService(object);
}

}  // namespace tfjob::objects
