// Applies the same defaults as Kubeflow's Training Operator, but only in memory: the stored object
// keeps what the user wrote.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::api {

// Sets fields that are unset: cleanPodPolicy to None and, for each replica type, replicas to 1 and
// restartPolicy to Never. Also makes sure that the container "tensorflow" (or the first container,
// if none has that name) has a port named tfjob-port. If the port is missing, replaces the pod
// template with a copy in which {name: tfjob-port, containerPort: 2222} is appended to the
// container's ports. SetDefaults is idempotent. A template of an unexpected shape is left
// unchanged.
void SetDefaults(TFJob& job);

}  // namespace tfjob::api
