// Decides what a peer may ask of a server. Private to this package.
#pragma once

#include <cstdint>

namespace tfjob::ps {

enum class PeerRole {
  kChief,   // trains, and defines, fills, copies, holds and ends the state
  kTrains,  // exchanges gradients for values
  kServes,  // another parameter server: takes part in commits
  kNone,    // may only ask how the server is
};

// Returns whether a peer of this role may send frames of this wire::Type. A type that does not
// exist is left to whoever reads it.
bool MaySend(PeerRole role, uint16_t type);

}  // namespace tfjob::ps
