#include "runtime/collectives/shared/shared_sockets.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace tfjob::collectives {

PeerSockets::PeerSockets(int rank, std::vector<wire::UniqueFd> sockets)
    : rank_(rank), sockets_(std::move(sockets)) {}

PeerSockets::~PeerSockets() {
  if (!thread_.joinable()) return;
  // This cannot fail, because the counter is 0.
  (void)eventfd_write(stop_.get(), 1);
  thread_.Join();
}

Status PeerSockets::Watch(Board& board) {
  stop_ = wire::UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (!stop_.valid()) return ErrnoStatus(errno, "eventfd");
  thread_ = Thread("shared-watch", [this, &board] { Run(board); });
  return OkStatus();
}

void PeerSockets::Run(Board& board) {
  // Poll only for closed sockets. Messages are left to the thread that runs the operations.
  std::vector<pollfd> entries;
  for (const wire::UniqueFd& socket : sockets_) {
    entries.push_back({.fd = socket.get(), .events = POLLRDHUP, .revents = 0});
  }
  entries[static_cast<size_t>(rank_)] = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = poll(entries.data(), entries.size(), -1);
  } while (ready < 0 && errno == EINTR);
  // Abort, because without this watch a wait for a lost rank would never return.
  if (ready < 0) return board.Abort(ErrnoStatus(errno, "watching the unix sockets"));
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_ || entries[static_cast<size_t>(rank)].revents == 0) continue;
    board.Abort(Unavailable("rank ", rank, " is lost: its process has closed the connection"));
    return;
  }
}

}  // namespace tfjob::collectives
