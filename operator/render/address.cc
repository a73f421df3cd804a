#include "operator/render/address.h"

#include "operator/api/names.h"
#include "operator/api/replicas.h"

namespace tfjob::render {

AddressScheme ClusterDns(std::string domain) {
  const std::string suffix = domain.empty() ? ".svc:" : StrCat(".svc.", domain, ":");
  return [suffix](const api::TFJob& job, api::ReplicaType type) -> AddressOfIndex {
    return {.before = api::ReplicaNamePrefix(job.metadata.name, type),
            .after = StrCat(".", job.metadata.name_space, suffix, api::TFJobPort(job, type))};
  };
}

AddressScheme Loopback(int32_t base_port) {
  return [base_port](const api::TFJob& job, api::ReplicaType type) -> AddressOfIndex {
    int32_t first = base_port;
    for (const api::ReplicaType before : api::kReplicaTypes) {
      if (before == type) break;
      first += api::Replicas(job, before);
    }
    return {.before = "127.0.0.1:", .first = first, .after = ""};
  };
}

}  // namespace tfjob::render
