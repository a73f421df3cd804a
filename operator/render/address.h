// Determines the addresses of replicas. Nothing else in a rendered job differs between a cluster
// and a single machine.
#pragma once

#include <functional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::render {

// Returns "host:port" for a slot of a job. The job must have defaults. Must be pure. Called
// for every slot of the job.
using AddressScheme = std::function<std::string(const api::TFJob&, const policy::Slot&)>;

// Returns addresses of the form `<job>-<type>-<i>.<namespace>.svc[.<domain>]:<port of the type>`.
// If `domain` is empty, the host ends in ".svc".
AddressScheme ClusterDns(std::string domain);

// Returns addresses of the form `127.0.0.1:<base_port + n>`, where n is the slot's position in the
// job (with types in the order of api::kReplicaTypes). The caller chooses `base_port` once per job.
AddressScheme Loopback(int32_t base_port);

}  // namespace tfjob::render
