// Packs TFJobs into the form that the cache stores. The client packs each job as soon as it is
// decoded. Therefore, even while the client reads a long list, at most one job is in memory as a
// JSON tree.
#pragma once

#include <memory>

#include "operator/client/client.h"
#include "operator/objects/packed_resource.h"

namespace tfjob::control {

// Packs a job without the last-applied annotation, which no decision uses. If the job has ended,
// also omits the pod templates, which neither its clean-up nor its TTL needs.
std::shared_ptr<const objects::PackedResource> PackJob(const objects::CustomResource& job);

// Returns the object as a packed job. Packs a CustomResource; returns a PackedResource unchanged,
// and nullptr for any other object.
std::shared_ptr<const objects::PackedResource> AsPackedJob(const client::Object& object);

// Packs a TFJob; returns any other object unchanged. Used as kube::ReflectorOptions::pack.
client::Object PackIfJob(client::Object object);

}  // namespace tfjob::control
