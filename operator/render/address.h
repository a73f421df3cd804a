// Determines where a replica can be reached: the only difference between a cluster and
// a single machine.
#pragma once

#include <functional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::render {

// (job with defaults, slot) → "host:port". Pure; called for every slot of a job.
using AddressScheme = std::function<std::string(const api::TFJob&, const policy::Slot&)>;

// `<job>-<type>-<i>.<namespace>.svc[.<domain>]:<port of the type>`; with an empty domain the host
// ends in ".svc".
AddressScheme ClusterDns(std::string domain);

// `127.0.0.1:<base + n>`, where n is the slot's position in the job (types in the order of
// api::kReplicaTypes). The caller chooses the base once per job.
AddressScheme Loopback(int32_t base_port);

}  // namespace tfjob::render
