// Defines when to report a silent peer and when to break its connection. No rule is needed for a
// peer that closes its connection, because the stream then breaks at once.
#pragma once

#include "runtime/base/clock.h"

namespace tfjob::rpc {

enum class Health { kAlive, kSuspected, kLost };

struct LivenessRules {
  Duration suspect_after{2s};
  Duration lease{10s};

  Health Judge(Duration silence) const {
    if (silence >= lease) return Health::kLost;
    return silence >= suspect_after ? Health::kSuspected : Health::kAlive;
  }
};

}  // namespace tfjob::rpc
