// When a silent peer is named, and when it is given up. A closed connection needs no rule: its
// stream breaks at once.
#pragma once

#include "runtime/base/clock.h"

namespace tfjob::rpc {

inline constexpr Duration kSuspectAfter{2s};
inline constexpr Duration kLease{10s};

enum class Health { kAlive, kSuspected, kLost };

inline Health Judge(Duration silence) {
  if (silence >= kLease) return Health::kLost;
  return silence >= kSuspectAfter ? Health::kSuspected : Health::kAlive;
}

}  // namespace tfjob::rpc
