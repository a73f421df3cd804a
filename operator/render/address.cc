#include "operator/render/address.h"

#include "operator/api/replicas.h"

namespace tfjob::render {

AddressScheme ClusterDns(std::string domain) {
  const std::string suffix = domain.empty() ? ".svc:" : StrCat(".svc.", domain, ":");
  return [suffix](const api::TFJob& job, const policy::Slot& slot) {
    return StrCat(api::ReplicaName(job.metadata.name, slot.type, slot.index), ".",
                  job.metadata.name_space, suffix, api::TFJobPort(job, slot.type));
  };
}

AddressScheme Loopback(int32_t base_port) {
  return [base_port](const api::TFJob& job, const policy::Slot& slot) {
    int32_t place = slot.index;
    for (const api::ReplicaType type : api::kReplicaTypes) {
      if (type == slot.type) break;
      place += api::Replicas(job, type);
    }
    return StrCat("127.0.0.1:", base_port + place);
  };
}

}  // namespace tfjob::render
