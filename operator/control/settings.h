// Holds what reconciles depend on besides the cluster.
#pragma once

#include <functional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/control/lost_nodes.h"
#include "operator/policy/facts/options.h"
#include "operator/render/address.h"
#include "runtime/base/clock.h"

namespace tfjob::objects {
struct Event;
}

namespace tfjob::control {

// Queues an event under `name`, the name that its object is to have; delivery is
// best effort. Thread-safe.
using RecordEvent = std::function<void(std::string name, objects::Event event)>;

struct Settings {
  policy::Options policy;
  render::AddressScheme address;  // required
  // The cleanPodPolicy of jobs that specify none.
  api::CleanPodPolicy default_clean_pod_policy = api::CleanPodPolicy::kNone;
  // Empty: nodes are not observed.
  IsNodeLost is_node_lost;
  // How long a status may be out of date if only its counts have changed: pods that start one after
  // the other cause one write. Conditions are written at once.
  Duration count_patience{0};
  // Where events go. Empty: through the client, at once, and again with a later reconcile
  // if that fails.
  RecordEvent record;
};

}  // namespace tfjob::control
