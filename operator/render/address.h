// Determines the addresses of replicas. Nothing else in a rendered job differs between a cluster
// and a single machine.
#pragma once

#include <functional>
#include <string>

#include "operator/api/tfjob.h"

namespace tfjob::render {

// Returns the address ("host:port") of the replica with the given index.
using AddressOfIndex = std::function<std::string(int32_t)>;

// Returns the addresses of a job's replicas of one type. The job must have defaults. Must be pure.
// Called once per type, so the type's template is searched for its port only once. The result does
// not refer to the job.
using AddressScheme = std::function<AddressOfIndex(const api::TFJob&, api::ReplicaType)>;

// Returns addresses of the form `<job>-<type>-<i>.<namespace>.svc[.<domain>]:<port of the type>`.
// If `domain` is empty, the host ends in ".svc".
AddressScheme ClusterDns(std::string domain);

// Returns addresses of the form `127.0.0.1:<base_port + n>`, where n is the slot's position in the
// job (with types in the order of api::kReplicaTypes). The caller chooses `base_port` once per job.
AddressScheme Loopback(int32_t base_port);

}  // namespace tfjob::render
