// Applies the reference's defaults, in memory only: the stored object keeps what the user wrote.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::api {

// Fills unset fields: cleanPodPolicy with None and, for each replica type, replicas with 1 and
// restartPolicy with Never. Also adds the port {name: tfjob-port, containerPort: 2222} to a copy
// of the pod template: it is appended last to the container "tensorflow" (or to the first one, if
// none has that name), unless that container has a port of that name.
// Idempotent. A template of an unexpected shape is left unchanged.
void SetDefaults(TFJob& job);

}  // namespace tfjob::api
