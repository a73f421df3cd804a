// The reference's defaults, filled in memory only: the stored object keeps what the user wrote.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::api {

// Fills cleanPodPolicy None, and of each type replicas 1, restartPolicy Never and, in a copy of the
// template, the port {name: tfjob-port, containerPort: 2222}: appended last to the container
// "tensorflow" (or the first, when none has that name) unless it has a port of that name.
// Idempotent; a template of an unexpected shape stays as it is.
void SetDefaults(TFJob& job);

}  // namespace tfjob::api
