// Reads the number of replicas from a job, and the restart policy, containers and port of each
// replica type.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::api {

// Returns the number of replicas of the type: 0 if the job does not have the type, 1 if the spec
// does not set a number.
int32_t Replicas(const TFJob& job, ReplicaType type);
// Returns the total number of replicas of all types.
int64_t TotalReplicas(const TFJob& job);
// Returns true if the job has exactly one replica. Such a job trains alone and gets no TF_CONFIG.
bool IsLocal(const TFJob& job);

// Returns the restart policy of the spec, or Never if it has none.
RestartPolicy EffectiveRestartPolicy(const ReplicaSpec& spec);

// Returns spec.containers of a pod template if it is an array, even one with invalid elements;
// otherwise, returns nullptr.
const Json* Containers(const Json& pod_template);
// Returns the container named "tensorflow" of a pod template; nullptr if there is none.
const Json* TensorflowContainer(const Json& pod_template);

// Returns the containerPort of the port named "tfjob-port" in the type's tensorflow container, or
// 2222 if there is none.
int32_t TFJobPort(const TFJob& job, ReplicaType type);

}  // namespace tfjob::api
