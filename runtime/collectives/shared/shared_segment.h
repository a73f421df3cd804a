// Defines memory that several processes on one machine map, and the messages that carry it from one
// process to another. The memory is a memfd, which has no name and exists until the last process
// releases it. Its descriptor travels over unix sockets.
//
// Data from a peer is never trusted. A segment is mapped only if it has the expected size and is
// sealed against shrinking; otherwise, a peer could shrink it later, and reading it would kill this
// process with SIGBUS. A peer can still free pages of a segment whose descriptor it has kept
// (fallocate with FALLOC_FL_PUNCH_HOLE). The bytes of these pages are then zero, and the next
// access allocates new pages. This kills the process only if the system has no memory left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/interrupt.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

// Owns a mapping, whose address is a multiple of the page size.
class Segment {
 public:
  // Creates a segment of zeros, sealed against any change of its size.
  static StatusOr<std::unique_ptr<Segment>> Make(size_t bytes);
  // Maps the segment of another process. Returns InvalidArgument if its size or its seals are
  // wrong.
  static StatusOr<std::unique_ptr<Segment>> Open(wire::UniqueFd descriptor, size_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  int descriptor() const { return descriptor_.get(); }
  // Allocates the memory for the bytes [begin, begin + bytes), so that later writes to them cannot
  // fail. Returns ResourceExhausted if there is not enough memory.
  Status Reserve(size_t begin, size_t bytes);
  // Closes the descriptor; the mapping stays.
  void CloseDescriptor() { descriptor_.Close(); }

 private:
  Segment(wire::UniqueFd descriptor, std::span<std::byte> bytes);

  wire::UniqueFd descriptor_;
  std::span<std::byte> bytes_;
};

// A message from one rank to another. All messages have the same size.
struct SegmentMessage {
  static constexpr uint64_t kMagic = 0x315347454a465421;  // "!TFJEGS1"
  // A rank introduces itself. Rank 0's message carries the segment that all ranks share.
  static constexpr uint32_t kGreeting = 1;
  // Rank 0 sends the segment of an allocation.
  static constexpr uint32_t kAllocation = 2;

  uint64_t magic = kMagic;
  uint32_t kind = 0;
  uint32_t rank = 0;                  // the sender's rank
  uint32_t ranks = 0;                 // the number of ranks in the group
  uint32_t number = 0;                // the allocation's number, from 1
  uint64_t bytes = 0;                 // the size of the segment
  std::array<std::byte, 16> nonce{};  // kGreeting: the number that the sender writes to the segment
};
static_assert(sizeof(SegmentMessage) == 48);

// Sends a message, together with `descriptor` unless `descriptor` is -1. Does not wait: returns
// Unavailable if the socket is full or closed.
Status SendMessage(int socket, const SegmentMessage& message, int descriptor);

struct ReceivedMessage {
  SegmentMessage message;
  wire::UniqueFd descriptor;  // not valid if none came with the message
};
// Waits for a message until the deadline, which is a time of RealClock().Monotonic(). Checks only
// the message's length. Returns Unavailable if the socket is closed, DeadlineExceeded at the
// deadline, or the error of `interrupt`.
StatusOr<ReceivedMessage> ReceiveMessage(int socket, Duration deadline,
                                         const Interrupt& interrupt = nullptr);

}  // namespace tfjob::collectives
