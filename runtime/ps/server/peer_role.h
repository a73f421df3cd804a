// Decides which requests a server accepts from a peer. Private to this package.
#pragma once

#include <cstdint>

namespace tfjob::ps {

enum class PeerRole {
  kChief,   // trains; also defines, fills, copies and holds the state, and finishes the job
  kTrains,  // exchanges gradients for values
  kServes,  // another parameter server: takes part in commits
  kNone,    // may only query the server's state
};

// Returns whether a peer of this role may send frames of this wire::Type. Returns true for types
// that do not exist, which the reader of the frame rejects.
bool MaySend(PeerRole role, uint16_t type);

}  // namespace tfjob::ps
