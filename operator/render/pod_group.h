// Builds a job's PodGroup for its scheduler, and makes pods members of the group. native_group.h
// builds the PodGroup of Kubernetes' own scheduler. https://github.com/volcano-sh/apis
// (scheduling/v1beta1) https://github.com/kubernetes-sigs/scheduler-plugins (scheduling/v1alpha1)
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "runtime/base/json.h"

namespace tfjob::render {

// Returns the object to create. It has the job's name, and a copy of each of the job's annotations
// that the scheduler reads from the group (GangTraits::annotation_domain).
Json BuildPodGroup(const api::TFJob& job, const policy::Gang& gang,
                   const policy::PodGroupSpec& spec);

// Returns a merge patch that updates the existing `group` to match `spec`, except for its queue.
// The UID of `group` is a precondition.
Json PatchPodGroup(const policy::Gang& gang, const policy::PodGroupSpec& spec,
                   const objects::CustomResource& group);

// Makes a pod a member of `group` by changing the pod's metadata or spec. If the gang is native and
// gang.alone is true, does not change the pod. `type` is the pod's replica type in lower case.
void JoinPodGroup(const policy::Gang& gang, const std::string& group, const std::string& type,
                  objects::ObjectMeta& pod, Json& spec);

}  // namespace tfjob::render
