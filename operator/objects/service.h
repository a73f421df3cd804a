// A service as the operator observes it.
#pragma once

#include "operator/objects/metadata.h"

namespace tfjob::objects {

struct ServicePort {
  std::string name;
  std::string protocol;  // "TCP", "UDP", "SCTP"
  int32_t port = 0;

  bool operator==(const ServicePort&) const = default;
};

struct Service {
  ObjectMeta metadata;
  std::string cluster_ip;  // "None" when headless
  bool publish_not_ready_addresses = false;
  std::map<std::string, std::string> selector;
  std::vector<ServicePort> ports;

  bool operator==(const Service&) const = default;
};

StatusOr<Service> ParseService(const Json& object);
StatusOr<Service> ParseService(const JsonView& object);

}  // namespace tfjob::objects
