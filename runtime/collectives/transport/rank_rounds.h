// Exchanges small messages between the ranks of a new generation over their data sockets, before a
// communicator uses the sockets. Private to this package.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/interrupt.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

static_assert(std::endian::native == std::endian::little, "numbers are sent as they are in memory");

// All ranks must call the same functions in the same order. Every function waits for all other
// ranks, for at most `patience`. Returns Unavailable, with a message that names the rank, if a rank
// does not answer. Returns the error of `interrupt` if there is one. Used by one thread.
class RankRounds {
 public:
  // Borrows the sockets, one non-blocking socket per rank; the entry of `rank` is not used.
  RankRounds(int rank, std::span<const wire::UniqueFd> sockets, Interrupt interrupt = nullptr)
      : rank_(rank), sockets_(sockets), interrupt_(std::move(interrupt)) {}

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(sockets_.size()); }
  const Interrupt& interrupt() const { return interrupt_; }
  // Returns the data socket to another rank, for poll.
  int of(int rank) const { return sockets_[static_cast<size_t>(rank)].get(); }

  // Sends message r of `sent` to every other rank r. Returns the messages from all ranks; this
  // rank's own entry in `sent` serves as its message.
  template <typename Message>
    requires std::is_trivially_copyable_v<Message>
  StatusOr<std::vector<Message>> Exchange(std::vector<Message> sent, Duration patience) {
    std::vector<Message> received = sent;
    RETURN_IF_ERROR(ExchangeBytes(std::as_bytes(std::span(sent)),
                                  std::as_writable_bytes(std::span(received)), sizeof(Message),
                                  patience));
    return received;
  }

  struct Verdict {
    Status status;
  };
  // The verdict is OK if `own` is OK on all ranks; otherwise, it is the error of the lowest rank
  // that has an error. All ranks get the same verdict.
  StatusOr<Verdict> Agree(const Status& own, Duration patience);

 private:
  Status ExchangeBytes(std::span<const std::byte> sent, std::span<std::byte> received, size_t size,
                       Duration patience);

  const int rank_;
  const std::span<const wire::UniqueFd> sockets_;
  const Interrupt interrupt_;
};

}  // namespace tfjob::collectives
