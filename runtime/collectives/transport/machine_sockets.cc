#include "runtime/collectives/transport/machine_sockets.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <list>
#include <string>
#include <utility>

#include "runtime/collectives/shared/await_socket.h"

namespace tfjob::collectives {
namespace {

// The number of connections that may be waiting for a proof. If there are more, the oldest
// connection is closed.
constexpr size_t kMostStrangers = 64;

StatusOr<MachineNumber> RandomNumber() {
  MachineNumber number;
  if (getentropy(number.data(), number.size()) != 0) return ErrnoStatus(errno, "getentropy");
  return number;
}

struct UnixAddress {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// A name that starts with a zero byte is abstract: it belongs to the network namespace, not to the
// file system.
UnixAddress AddressOf(const MachineNumber& name) {
  std::string text(1, '\0');
  text += "tfjob-";
  for (const std::byte byte : name) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  UnixAddress address;
  std::memcpy(address.address.sun_path, text.data(), text.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  return address;
}

StatusOr<wire::UniqueFd> UnixSocket() {
  wire::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "a unix socket");
  return fd;
}

bool IsOwnUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

// Reads the bytes of a proof as they arrive, but no bytes that follow the proof.
class ProofReader {
 public:
  // Returns whether the proof is complete. Returns Unavailable if the connection was closed.
  StatusOr<bool> Read(int fd) {
    while (have_ < bytes_.size()) {
      const ssize_t got = recv(fd, bytes_.data() + have_, bytes_.size() - have_, MSG_DONTWAIT);
      if (got > 0) {
        have_ += static_cast<size_t>(got);
      } else if (got == 0) {
        return Unavailable("the connection has ended");
      } else if (errno == EAGAIN) {
        return false;
      } else if (errno != EINTR) {
        return ErrnoStatus(errno, "recv");
      }
    }
    return true;
  }
  MachineProof proof() const { return std::bit_cast<MachineProof>(bytes_); }

 private:
  std::array<std::byte, sizeof(MachineProof)> bytes_{};
  size_t have_ = 0;
};

class Meeting {
 public:
  Meeting(RankRounds& rounds, Duration patience, const MayShare& may_share)
      : rounds_(rounds),
        patience_(patience),
        may_share_(may_share),
        given_(static_cast<size_t>(rounds.ranks())),
        sockets_(given_.size()) {}

  StatusOr<MachineSockets> Run() {
    ASSIGN_OR_RETURN(auto verdict, rounds_.Agree(Listen(), patience_));
    if (!verdict.status.ok()) return Failed(verdict.status);
    ASSIGN_OR_RETURN(taken_, rounds_.Exchange(given_, patience_));
    ASSIGN_OR_RETURN(verdict, rounds_.Agree(DialHigherRanks(), patience_));
    if (!verdict.status.ok()) return Failed(verdict.status);
    ASSIGN_OR_RETURN(const Status same, FindMachines());
    // Wait for twice as long, because another rank may use up its patience in Prove.
    ASSIGN_OR_RETURN(verdict, rounds_.Agree(same.ok() ? Prove() : same, 2 * patience_));
    if (!verdict.status.ok()) return Failed(verdict.status);
    return MachineSockets{.failed = OkStatus(),
                          .hosts = std::move(hosts_),
                          .apart = std::move(apart_),
                          .sockets = std::move(sockets_)};
  }

 private:
  struct Stranger {
    wire::UniqueFd socket;
    ProofReader reader;
  };

  static MachineSockets Failed(const Status& why) {
    return {.failed = why, .hosts = {}, .apart = why, .sockets = {}};
  }

  int rank() const { return rounds_.rank(); }
  wire::UniqueFd& SocketOf(int rank) { return sockets_[static_cast<size_t>(rank)]; }

  // Creates the offers and the socket on which this rank listens.
  Status Listen() {
    ASSIGN_OR_RETURN(const MachineNumber name, RandomNumber());
    for (MachineOffer& offer : given_) {
      offer.name = name;
      ASSIGN_OR_RETURN(offer.number, RandomNumber());
    }
    ASSIGN_OR_RETURN(listener_, UnixSocket());
    const UnixAddress address = AddressOf(name);
    if (bind(listener_.get(), address.get(), address.length) != 0 ||
        listen(listener_.get(), SOMAXCONN) != 0) {
      return ErrnoStatus(errno, "listening on a unix socket");
    }
    return OkStatus();
  }

  // The connections wait in the queues of the higher ranks, so this does not block.
  Status DialHigherRanks() {
    for (int other = rank() + 1; other < rounds_.ranks(); ++other) {
      Reach& reach = row_.reached[static_cast<size_t>(other)];
      reach = Reach::kOtherNamespace;
      if (may_share_ && !may_share_(rank(), other)) continue;
      auto dialled = DialOnMachine(taken_[static_cast<size_t>(other)].name);
      if (dialled.ok()) {
        reach = Reach::kReached;
        SocketOf(other) = *std::move(dialled);
        RETURN_IF_ERROR(SendProof(other));
      } else if (absl::IsPermissionDenied(dialled.status())) {
        reach = Reach::kOtherUser;
      } else if (!absl::IsFailedPrecondition(dialled.status())) {
        return Annotate(dialled.status(), StrCat("dialling rank ", other));
      }
    }
    return OkStatus();
  }

  // Sets hosts_ and apart_, and closes the connections to ranks of other machines. Returns an error
  // if the ranks have not found the same machines, which happens only if one of them lies.
  StatusOr<Status> FindMachines() {
    const std::vector<MachineRow> own(static_cast<size_t>(rounds_.ranks()), row_);
    ASSIGN_OR_RETURN(const std::vector<MachineRow> rows, rounds_.Exchange(own, patience_));
    std::vector<std::vector<Reach>> reached;
    for (const MachineRow& row : rows) {
      reached.emplace_back(row.reached.begin(), row.reached.begin() + rounds_.ranks());
    }
    hosts_ = MachinesOf(reached);
    apart_ = WhyApart(reached);
    for (int other = 0; other < rounds_.ranks(); ++other) {
      if (!IsNeighbour(other)) SocketOf(other).Close();
    }
    MachineList list;
    for (int other = 0; other < rounds_.ranks(); ++other) {
      list.machine_of[static_cast<size_t>(other)] = static_cast<uint16_t>(hosts_.MachineOf(other));
    }
    const std::vector<MachineList> lists(static_cast<size_t>(rounds_.ranks()), list);
    ASSIGN_OR_RETURN(const std::vector<MachineList> all, rounds_.Exchange(lists, patience_));
    for (int other = 0; other < rounds_.ranks(); ++other) {
      if (all[static_cast<size_t>(other)] == list) continue;
      return Internal("rank ", other, " has found other machines of the ranks");
    }
    return OkStatus();
  }

  // Returns why the first pair of ranks on different machines cannot share memory.
  static Status WhyApart(const std::vector<std::vector<Reach>>& reached) {
    for (size_t rank = 0; rank < reached.size(); ++rank) {
      for (size_t other = rank + 1; other < reached.size(); ++other) {
        const std::string pair = StrCat("rank ", rank, ": dialling rank ", other, ": ");
        if (reached[rank][other] == Reach::kReached) continue;
        if (reached[rank][other] == Reach::kOtherUser) {
          return PermissionDenied(pair, "its unix socket belongs to another user");
        }
        return FailedPrecondition(pair, "its unix socket is not in this network namespace");
      }
    }
    return OkStatus();
  }

  bool IsNeighbour(int other) const {
    return other != rank() && hosts_.MachineOf(other) == hosts_.MachineOf(rank());
  }

  Status SendProof(int other) {
    const MachineProof proof{.rank = static_cast<uint32_t>(rank()),
                             .number = taken_[static_cast<size_t>(other)].number};
    if (send(SocketOf(other).get(), &proof, sizeof proof, MSG_NOSIGNAL | MSG_DONTWAIT) ==
        static_cast<ssize_t>(sizeof proof)) {
      return OkStatus();
    }
    return Unavailable("rank ", other, " has closed its unix socket");
  }

  bool IsProof(const MachineProof& proof, int other) const {
    return proof.rank == static_cast<uint32_t>(other) &&
           proof.number == given_[static_cast<size_t>(other)].number;
  }

  Status Prove() {
    const Duration deadline = RealClock().Monotonic() + patience_;
    RETURN_IF_ERROR(AwaitLowerRanks(deadline));
    for (int other = rank() + 1; other < rounds_.ranks(); ++other) {
      if (!IsNeighbour(other)) continue;
      RETURN_IF_ERROR(Annotate(AwaitAnswer(other, deadline), StrCat("the answer of rank ", other)));
    }
    return OkStatus();
  }

  Status AwaitAnswer(int other, Duration deadline) {
    ProofReader reader;
    while (true) {
      ASSIGN_OR_RETURN(const bool complete, reader.Read(SocketOf(other).get()));
      if (complete) break;
      ASSIGN_OR_RETURN(const bool ready,
                       AwaitSocket(SocketOf(other).get(), POLLIN, deadline, rounds_.interrupt()));
      if (!ready) return DeadlineExceeded("it did not come in time");
    }
    if (IsProof(reader.proof(), other)) return OkStatus();
    return PermissionDenied("it does not contain the number that was sent to it");
  }

  Status AwaitLowerRanks(Duration deadline) {
    const auto missing = [this] {
      int other = 0;
      while (other < rank() && (!IsNeighbour(other) || SocketOf(other).valid())) ++other;
      return other;
    };
    while (missing() < rank()) {
      RETURN_IF_ERROR(Ask(rounds_.interrupt()));
      if (RealClock().Monotonic() >= deadline) {
        return DeadlineExceeded("rank ", missing(), " did not prove itself in time");
      }
      RETURN_IF_ERROR(AwaitAny(deadline));
      RETURN_IF_ERROR(AcceptAll());
      std::erase_if(strangers_, [this](Stranger& stranger) { return !IsUndecided(stranger); });
    }
    return OkStatus();
  }

  // Waits until a stranger has connected or has sent something, or until it is time to check
  // whether the wait should continue. Returns Unavailable if a rank is gone.
  Status AwaitAny(Duration deadline) {
    std::vector<pollfd> entries;
    for (int other = 0; other < rounds_.ranks(); ++other) {
      entries.push_back({.fd = other == rank() ? listener_.get() : rounds_.of(other),
                         .events = static_cast<short>(other == rank() ? POLLIN : POLLRDHUP),
                         .revents = 0});
    }
    for (const Stranger& stranger : strangers_) {
      entries.push_back({.fd = stranger.socket.get(), .events = POLLIN, .revents = 0});
    }
    const Duration left = std::max(deadline - RealClock().Monotonic(), Duration(0));
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    constexpr int64_t kMost = std::chrono::ceil<std::chrono::milliseconds>(kInterruptPoll).count();
    (void)poll(entries.data(), entries.size(), static_cast<int>(std::min(ms, kMost)));
    for (int other = 0; other < rounds_.ranks(); ++other) {
      if (other == rank() || entries[static_cast<size_t>(other)].revents == 0) continue;
      return Unavailable("rank ", other, " has closed its connection");
    }
    return OkStatus();
  }

  Status AcceptAll() {
    for (size_t i = 0; i < kMostStrangers; ++i) {
      wire::UniqueFd socket(
          accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return OkStatus();
        return ErrnoStatus(errno, "accepting connections of ranks");
      }
      if (!IsOwnUser(socket.get())) continue;
      if (strangers_.size() == kMostStrangers) strangers_.pop_front();
      strangers_.push_back({.socket = std::move(socket), .reader = {}});
    }
    return OkStatus();
  }

  // Accepts the stranger's connection if it is proven to come from a lower rank. Returns false once
  // the stranger has been accepted or refused.
  bool IsUndecided(Stranger& stranger) {
    const StatusOr<bool> complete = stranger.reader.Read(stranger.socket.get());
    if (!complete.ok()) return false;
    if (!*complete) return true;
    const MachineProof proof = stranger.reader.proof();
    if (proof.rank >= static_cast<uint32_t>(rank())) return false;
    const auto other = static_cast<int>(proof.rank);
    if (!IsNeighbour(other) || !IsProof(proof, other) || SocketOf(other).valid()) return false;
    SocketOf(other) = std::move(stranger.socket);
    // Ignore errors: if the rank is gone, the verdict from Agree shows this.
    (void)SendProof(other);
    return false;
  }

  RankRounds& rounds_;
  const Duration patience_;
  const MayShare& may_share_;
  std::vector<MachineOffer> given_, taken_;  // by rank
  std::vector<wire::UniqueFd> sockets_;      // by rank
  MachineRow row_;
  Hosts hosts_;
  Status apart_;
  wire::UniqueFd listener_;
  std::list<Stranger> strangers_;
};

}  // namespace

StatusOr<wire::UniqueFd> DialOnMachine(const MachineNumber& name) {
  ASSIGN_OR_RETURN(wire::UniqueFd fd, UnixSocket());
  const UnixAddress address = AddressOf(name);
  if (connect(fd.get(), address.get(), address.length) != 0) {
    if (errno != ECONNREFUSED) return ErrnoStatus(errno, "connecting a unix socket");
    return FailedPrecondition("its unix socket is not in this network namespace");
  }
  if (!IsOwnUser(fd.get())) return PermissionDenied("its unix socket belongs to another user");
  return fd;
}

Hosts MachinesOf(const std::vector<std::vector<Reach>>& reached) {
  std::vector<int> machine_of;
  for (size_t rank = 0; rank < reached.size(); ++rank) {
    int machine = 0;
    const auto reaches_all = [&] {
      for (size_t other = 0; other < rank; ++other) {
        if (machine_of[other] == machine && reached[other][rank] != Reach::kReached) return false;
      }
      return true;
    };
    while (!reaches_all()) ++machine;
    machine_of.push_back(machine);
  }
  return Hosts(machine_of);
}

StatusOr<MachineSockets> ConnectOnMachine(RankRounds& rounds, Duration patience,
                                          const MayShare& may_share) {
  return Meeting(rounds, patience, may_share).Run();
}

}  // namespace tfjob::collectives
