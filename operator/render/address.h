// Where a replica can be reached: the one thing in which a cluster and a single machine differ.
#pragma once

#include <functional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::render {

// (job with defaults, slot) → "host:port". Pure; called for every slot of a job.
using AddressScheme = std::function<std::string(const api::TFJob&, const policy::Slot&)>;

// `<job>-<type>-<i>.<namespace>.svc[.<domain>]:<port of the type>`; an empty domain ends in ".svc".
AddressScheme ClusterDns(std::string domain);

// `127.0.0.1:<base + n>` with n the slot's place in the job (types in the order of
// api::kReplicaTypes). The base is chosen once a job, by the caller.
AddressScheme Loopback(int32_t base_port);

}  // namespace tfjob::render
