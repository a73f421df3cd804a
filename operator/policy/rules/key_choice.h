// Decides under which of the operator's keys the new pods of a job get the job's key.
#pragma once

#include <string>
#include <vector>

#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

struct KeyChoice {
  std::string id;  // of the operator's key; "" if new pods get no key
  // The id that the living pods have, but the operator no longer has; "" if there is no such
  // problem. New pods and living ones then refuse each other.
  std::string missing;

  bool operator==(const KeyChoice&) const = default;
};

// Tasks can only talk to each other if they have the same key. New pods therefore get the key of
// the living pods (pending or active, in their slots, of the current attempt), and none if these
// have none. If living pods differ, most of them decide; among equally many, the first in slot
// order. If no pod lives, or the operator no longer has that key, new pods get the newest.
// `key_ids`: the operator's keys, from the oldest to the newest.
KeyChoice ChooseKey(const Replicas& replicas, const std::vector<std::string>& key_ids);

}  // namespace tfjob::policy
