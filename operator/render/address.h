// Determines the addresses of replicas, the only part of a rendered job that differs between a
// cluster and a single machine.
#pragma once

#include <functional>
#include <string>

#include "operator/api/tfjob.h"
#include "runtime/cluster/address_pattern.h"

namespace tfjob::render {

// The addresses ("host:port") of the replicas of one type, as a function of their index.
using AddressOfIndex = cluster::AddressPattern;

// Returns the addresses of a job's replicas of one type. The job must have defaults. Must be pure.
// Called once per type, so each template is searched for its port only once.
using AddressScheme = std::function<AddressOfIndex(const api::TFJob&, api::ReplicaType)>;

// Returns addresses of the form `<job>-<type>-<i>.<namespace>.svc[.<domain>]:<port of the type>`.
// If `domain` is empty, the host name ends with ".svc".
AddressScheme ClusterDns(std::string domain);

// Returns addresses of the form `127.0.0.1:<base_port + n>`, where n is the slot's position in the
// job (with types in the order of api::kReplicaTypes). The caller chooses `base_port` once per job.
AddressScheme Loopback(int32_t base_port);

}  // namespace tfjob::render
