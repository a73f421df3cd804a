#include "runtime/collectives/shared/shared_communicator.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/collectives/shared/shared_operations.h"
#include "runtime/collectives/shared/shared_process_space.h"
#include "runtime/collectives/shared/shared_segment.h"
#include "runtime/collectives/shared/shared_sockets.h"

namespace tfjob::collectives {
namespace {

using Nonce = std::array<std::byte, 16>;

// The segment starts with one nonce per rank, followed by the memory of the operations.
size_t NonceBytes(int ranks) {
  constexpr size_t kAlignment = 128;  // alignment of the operations' memory
  return (static_cast<size_t>(ranks) * sizeof(Nonce) + kAlignment - 1) / kAlignment * kAlignment;
}

size_t SegmentBytes(int ranks) {
  return NonceBytes(ranks) + SharedOperations::MemoryBytes(ranks);
}

Status CheckSockets(const SharedOptions& options) {
  const auto ranks = static_cast<int>(options.sockets.size());
  if (ranks < 2 || ranks > Board::kMostRanks || options.rank < 0 || options.rank >= ranks) {
    return InvalidArgument("rank ", options.rank, " of ", ranks, ": shared memory is for 2 to ",
                           Board::kMostRanks, " ranks");
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == options.rank) continue;
    int domain = 0;
    socklen_t length = sizeof domain;
    if (getsockopt(options.sockets[static_cast<size_t>(rank)].get(), SOL_SOCKET, SO_DOMAIN, &domain,
                   &length) != 0 ||
        domain != AF_UNIX) {
      return InvalidArgument("the socket to rank ", rank, ": expected a connected unix socket");
    }
  }
  return OkStatus();
}

// Introduces the ranks to each other.
class Introduction {
 public:
  Introduction(const PeerSockets& sockets, Duration deadline, const Interrupt& interrupt)
      : sockets_(sockets), deadline_(deadline), interrupt_(interrupt) {}

  // Returns the segment that all ranks share, in which the nonces of all ranks have been found.
  StatusOr<std::unique_ptr<Segment>> Run() {
    if (getentropy(nonce_.data(), nonce_.size()) != 0) return ErrnoStatus(errno, "getentropy");
    if (sockets_.rank() == 0) {
      ASSIGN_OR_RETURN(segment_, Segment::Make(SegmentBytes(sockets_.ranks())));
      RETURN_IF_ERROR(segment_->Reserve(0, segment_->bytes().size()));
    } else {
      RETURN_IF_ERROR(Annotate(Meet(0), "rank 0"));
    }
    std::memcpy(PlaceOf(sockets_.rank()), nonce_.data(), nonce_.size());
    for (int rank = 0; rank < sockets_.ranks(); ++rank) {
      if (rank != sockets_.rank()) RETURN_IF_ERROR(Annotate(Greet(rank), StrCat("rank ", rank)));
    }
    for (int rank = 1; rank < sockets_.ranks(); ++rank) {
      if (rank != sockets_.rank()) RETURN_IF_ERROR(Annotate(Meet(rank), StrCat("rank ", rank)));
    }
    segment_->CloseDescriptor();
    return std::move(segment_);
  }

 private:
  std::byte* PlaceOf(int rank) const {
    return segment_->bytes().data() + static_cast<size_t>(rank) * sizeof(Nonce);
  }

  Status Greet(int rank) {
    const SegmentMessage greeting{.kind = SegmentMessage::kGreeting,
                                  .rank = static_cast<uint32_t>(sockets_.rank()),
                                  .ranks = static_cast<uint32_t>(sockets_.ranks()),
                                  .bytes = segment_->bytes().size(),
                                  .nonce = nonce_};
    return SendMessage(sockets_.of(rank), greeting,
                       sockets_.rank() == 0 ? segment_->descriptor() : -1);
  }

  // Receives the greeting of a rank, and looks for its nonce in the segment.
  Status Meet(int rank) {
    ASSIGN_OR_RETURN(ReceivedMessage received,
                     ReceiveMessage(sockets_.of(rank), deadline_, interrupt_));
    RETURN_IF_ERROR(Check(received.message, rank));
    if (rank == 0) {
      if (!received.descriptor.valid()) return InvalidArgument("it sent no shared memory");
      ASSIGN_OR_RETURN(
          segment_, Segment::Open(std::move(received.descriptor), SegmentBytes(sockets_.ranks())));
    }
    if (std::memcmp(PlaceOf(rank), received.message.nonce.data(), sizeof(Nonce)) != 0) {
      return FailedPrecondition(
          "the number that it sent is not in the shared memory, so it sees other memory: the ranks "
          "must be processes of one machine");
    }
    return OkStatus();
  }

  Status Check(const SegmentMessage& message, int rank) const {
    if (message.magic != SegmentMessage::kMagic || message.kind != SegmentMessage::kGreeting) {
      return InvalidArgument("expected a greeting, got other bytes");
    }
    if (message.rank != static_cast<uint32_t>(rank) ||
        message.ranks != static_cast<uint32_t>(sockets_.ranks()) ||
        message.bytes != SegmentBytes(sockets_.ranks())) {
      return InvalidArgument("it is rank ", message.rank, " of ", message.ranks, " with ",
                             message.bytes, " bytes of shared memory: expected rank ", rank, " of ",
                             sockets_.ranks(), " with ", SegmentBytes(sockets_.ranks()));
    }
    return OkStatus();
  }

  const PeerSockets& sockets_;
  const Duration deadline_;
  const Interrupt& interrupt_;
  Nonce nonce_{};
  std::unique_ptr<Segment> segment_;
};

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeSharedCommunicator(SharedOptions options) {
  RETURN_IF_ERROR(CheckSockets(options));
  auto sockets = std::make_unique<PeerSockets>(options.rank, std::move(options.sockets));
  const int ranks = sockets->ranks();
  const Duration deadline = RealClock().Monotonic() + options.setup_timeout;
  StatusOr<std::unique_ptr<Segment>> segment =
      Introduction(*sockets, deadline, options.interrupt).Run();
  if (!segment.ok()) return Annotate(segment.status(), "shared memory");
  std::shared_ptr<Segment> owner = std::move(segment).value();
  std::byte* const memory = owner->bytes().data() + NonceBytes(ranks);
  auto space = std::make_unique<ProcessSpace>(std::move(sockets));
  PeerSockets& watched = space->sockets();
  auto communicator = std::make_unique<SharedOperations>(
      std::move(owner), memory, options.rank, ranks, Sharing::kProcesses, std::move(space));
  RETURN_IF_ERROR(watched.Watch(communicator->board()));
  // If a rank refuses another rank, it closes its sockets. This wait then fails.
  RETURN_IF_ERROR(Annotate(communicator->AwaitAll(deadline, options.interrupt), "shared memory"));
  return communicator;
}

}  // namespace tfjob::collectives
