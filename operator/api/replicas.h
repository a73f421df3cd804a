// How many replicas a job has, and the container and port of each type.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::api {

// The type's replicas: 0 when the job does not have the type, 1 when it says nothing.
int32_t Replicas(const TFJob& job, ReplicaType type);
// Over all types.
int64_t TotalReplicas(const TFJob& job);
// A job of exactly one replica trains alone: it gets no TF_CONFIG.
bool IsLocal(const TFJob& job);

// spec.containers of a pod template (an array of objects), or nullptr.
const Json* Containers(const Json& pod_template);
// The container named "tensorflow" of a pod template, or nullptr.
const Json* TensorflowContainer(const Json& pod_template);

// containerPort of the port named "tfjob-port" in the type's tensorflow container; 2222 when there
// is none.
int32_t TFJobPort(const TFJob& job, ReplicaType type);

}  // namespace tfjob::api
