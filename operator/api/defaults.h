// Applies the same defaults as the reference, but only in memory: the stored object keeps what the
// user wrote.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::api {

// Sets fields that are unset: cleanPodPolicy to None and, for each replica type, replicas to 1 and
// restartPolicy to Never. Also appends the port {name: tfjob-port, containerPort: 2222}, in a copy
// of the pod template, to the ports of the container "tensorflow" (or of the first container, if
// none has that name), unless the container already has a port named tfjob-port. Idempotent. A
// template of an unexpected shape is left unchanged.
void SetDefaults(TFJob& job);

}  // namespace tfjob::api
