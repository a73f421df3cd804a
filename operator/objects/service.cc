#include "operator/objects/service.h"

#include <nlohmann/json.hpp>

#include "operator/objects/fields.h"

namespace tfjob::objects {

namespace {

template <typename Field>
StatusOr<Service> ReadService(const Field& root) {
  if (!root.IsObject()) return root.Mismatch("a Service object");
  Service service;
  ASSIGN_OR_RETURN(service.metadata, ParseObjectMeta(root["metadata"]));
  const Field spec = root["spec"];
  RETURN_IF_ERROR(Read(spec["clusterIP"], service.cluster_ip));
  RETURN_IF_ERROR(Read(spec["publishNotReadyAddresses"], service.publish_not_ready_addresses));
  RETURN_IF_ERROR(Read(spec["selector"], service.selector));
  ASSIGN_OR_RETURN(const auto ports, spec["ports"].Elements());
  for (const Field& field : ports) {
    ServicePort port;
    port.protocol = "TCP";
    RETURN_IF_ERROR(Read(field["name"], port.name));
    RETURN_IF_ERROR(Read(field["protocol"], port.protocol));
    RETURN_IF_ERROR(Read(field["port"], port.port));
    service.ports.push_back(std::move(port));
  }
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
