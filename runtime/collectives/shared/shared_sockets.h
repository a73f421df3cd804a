// Owns the unix sockets between a rank and the others. The sockets carry the memory of allocations.
// They also reveal when a rank's process exits, because the system then closes its sockets.
#pragma once

#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/shared/shared_board.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

class PeerSockets {
 public:
  // `sockets` has an entry per rank; the entry of `rank` is empty.
  PeerSockets(int rank, std::vector<wire::UniqueFd> sockets);
  // Stops watching.
  ~PeerSockets();
  PeerSockets(const PeerSockets&) = delete;
  PeerSockets& operator=(const PeerSockets&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(sockets_.size()); }
  int of(int rank) const { return sockets_[static_cast<size_t>(rank)].get(); }

  // Starts a thread that aborts the board's operations when a peer's socket is closed. The board
  // must outlive the sockets. Call once.
  Status Watch(Board& board);

 private:
  void Run(Board& board);

  const int rank_;
  const std::vector<wire::UniqueFd> sockets_;
  wire::UniqueFd stop_;  // an eventfd
  Thread thread_;
};

}  // namespace tfjob::collectives
