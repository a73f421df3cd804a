// Packs TFJobs into the form in which the cache holds them. The client packs each job as soon as it
// is decoded, so a long list never has more than one job's JSON tree in memory.
#pragma once

#include <memory>

#include "operator/client/client.h"
#include "operator/objects/packed_resource.h"

namespace tfjob::control {

// Packs a job without the last-applied annotation, which no decision uses. If the job has ended,
// also omits the pod templates, which neither its clean-up nor its TTL needs.
std::shared_ptr<const objects::PackedResource> PackJob(const objects::CustomResource& job);

// Returns the object as a packed job. Packs a CustomResource, and returns a PackedResource as it
// is. Returns nullptr for anything else.
std::shared_ptr<const objects::PackedResource> AsPackedJob(const client::Object& object);

// Packs a TFJob; returns any other object as it is. For kube::ReflectorOptions::pack.
client::Object PackIfJob(client::Object object);

}  // namespace tfjob::control
