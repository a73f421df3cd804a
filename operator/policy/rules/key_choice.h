// Chooses the key of the operator from which the job key of a job's new pods is derived.
#pragma once

#include <string>
#include <vector>

#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

struct KeyChoice {
  std::string id;  // identifies the operator's key; "" if new pods get no key
  // The id of a key that the live pods have but the operator no longer has; "" if there is no such
  // key. With such a key, new pods and live pods reject each other.
  std::string missing;

  bool operator==(const KeyChoice&) const = default;
};

// Returns the key for new pods. Tasks can only communicate if they have the same key. New pods
// therefore get the key of the live pods (pending or active, in their slots, of the current
// attempt), and no key if the live pods have none. If the live pods have different keys, new pods
// get the most common key or, if several are equally common, the first of these in slot order. If
// no pod is live, or the operator no longer has that key, new pods get the newest key. `key_ids`
// lists the operator's keys, from the oldest to the newest.
KeyChoice ChooseKey(const Replicas& replicas, const std::vector<std::string>& key_ids);

}  // namespace tfjob::policy
