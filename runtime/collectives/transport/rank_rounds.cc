#include "runtime/collectives/transport/rank_rounds.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/collectives/peer_reason.h"
#include "runtime/collectives/shared/await_socket.h"

namespace tfjob::collectives {
namespace {

// The message that Agree exchanges.
struct VerdictMessage {
  static constexpr uint32_t kVerdict = 0x31564654;  // "TFV1"

  uint32_t magic = kVerdict;
  uint32_t code = 0;
  std::array<char, 248> text{};  // ends at the first zero
};

VerdictMessage MessageOf(const Status& status) {
  VerdictMessage message{.code = static_cast<uint32_t>(status.code())};
  Message(status).copy(message.text.data(), message.text.size());
  return message;
}

Status StatusOf(const VerdictMessage& message, int rank) {
  if (message.code == 0) return OkStatus();
  const std::string_view text(message.text.data(),
                              strnlen(message.text.data(), message.text.size()));
  return Annotate(ReasonOfPeer(message.code, text, StatusCode::kInternal), StrCat("rank ", rank));
}

Status Ready(int fd, short events, Duration deadline, const Interrupt& interrupt,
             const char* otherwise) {
  ASSIGN_OR_RETURN(const bool ready, AwaitSocket(fd, events, deadline, interrupt));
  return ready ? OkStatus() : Unavailable(otherwise);
}

Status SendMessageTo(int fd, std::span<const std::byte> bytes, Duration deadline,
                     const Interrupt& interrupt) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (sent < 0 && errno != EINTR && errno != EAGAIN) {
      return Unavailable(strerror(errno));
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(Ready(fd, POLLOUT, deadline, interrupt, "it receives nothing"));
    }
  }
  return OkStatus();
}

Status ReceiveMessageFrom(int fd, std::span<std::byte> bytes, Duration deadline,
                          const Interrupt& interrupt) {
  while (!bytes.empty()) {
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) return Unavailable("it has closed its connection");
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (errno != EINTR && errno != EAGAIN) {
      return Unavailable(strerror(errno));
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(Ready(fd, POLLIN, deadline, interrupt, "it did not answer in time"));
    }
  }
  return OkStatus();
}

}  // namespace

Status RankRounds::ExchangeBytes(std::span<const std::byte> sent, std::span<std::byte> received,
                                 size_t size, Duration patience) {
  const Duration deadline = RealClock().Monotonic() + patience;
  // An interrupted rank sends no verdict; the others learn of the interruption when its sockets are
  // closed.
  RETURN_IF_ERROR(Ask(interrupt_));
  for (const bool sends : {true, false}) {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == rank_) continue;
      const size_t begin = static_cast<size_t>(rank) * size;
      const int fd = sockets_[static_cast<size_t>(rank)].get();
      const Status moved =
          sends ? SendMessageTo(fd, sent.subspan(begin, size), deadline, interrupt_)
                : ReceiveMessageFrom(fd, received.subspan(begin, size), deadline, interrupt_);
      RETURN_IF_ERROR(Ask(interrupt_));
      RETURN_IF_ERROR(Annotate(moved, StrCat("rank ", rank)));
    }
  }
  return OkStatus();
}

StatusOr<RankRounds::Verdict> RankRounds::Agree(const Status& own, Duration patience) {
  const std::vector<VerdictMessage> sent(static_cast<size_t>(ranks()), MessageOf(own));
  ASSIGN_OR_RETURN(const std::vector<VerdictMessage> received, Exchange(sent, patience));
  for (int rank = 0; rank < ranks(); ++rank) {
    if (received[static_cast<size_t>(rank)].magic == VerdictMessage::kVerdict) continue;
    return Unavailable("rank ", rank, " sent other bytes than a verdict");
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    const Status status = StatusOf(received[static_cast<size_t>(rank)], rank);
    if (!status.ok()) return Verdict{status};
  }
  return Verdict{OkStatus()};
}

}  // namespace tfjob::collectives
