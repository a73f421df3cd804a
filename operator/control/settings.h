// Defines the settings that reconciles depend on.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/control/admit.h"
#include "operator/control/lost_nodes.h"
#include "operator/policy/facts/decision_options.h"
#include "operator/render/address.h"
#include "runtime/base/clock.h"

namespace tfjob::keys {
class KeyRing;
}
namespace tfjob::objects {
struct Event;
}

namespace tfjob::control {

// Queues an Event that will be created under the name `name`. Delivery is best effort. Thread-safe.
using RecordEvent = std::function<void(std::string name, objects::Event event)>;

// Returns the operator's current keys. Called once per reconcile. Thread-safe.
using GetKeys = std::function<std::shared_ptr<const keys::KeyRing>()>;

struct Settings {
  policy::DecisionOptions policy;
  render::AddressScheme address;  // required
  AdmissionRules admission;
  GetKeys keys;  // if empty, pods get no keys
  // If empty, lost nodes are not detected.
  IsNodeLost is_node_lost;
  // How long a status may be out of date if only its counts have changed. This delay combines the
  // writes for pods that start one after another. Conditions are written immediately.
  Duration count_patience{0};
  // Receives all events. If empty, events are sent through the client immediately; an event that
  // cannot be sent is retried during a later reconcile.
  RecordEvent record;
};

}  // namespace tfjob::control
