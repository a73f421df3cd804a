#include "runtime/wire/dial.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"

namespace tfjob::wire {
namespace {

constexpr Duration kFirstPause = 50ms, kLongestPause = 500ms;

Duration Monotonic() {
  return RealClock().Monotonic();
}

struct Addresses {
  std::vector<sockaddr_storage> list;
  std::string error;
};

Addresses LookUp(const HostPort& place, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  Addresses result;
  if (int error = getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &found); error != 0) {
    result.error = StrCat("the host '", place.host, "': ", gai_strerror(error));
    return result;
  }
  for (const addrinfo* item = found; item != nullptr; item = item->ai_next) {
    sockaddr_storage address{};
    if (item->ai_addrlen > sizeof address) continue;
    std::memcpy(&address, item->ai_addr, item->ai_addrlen);
    result.list.push_back(address);
  }
  freeaddrinfo(found);
  return result;
}

// Looks up a name. getaddrinfo has no deadline (if the name server does not answer, the call takes
// half a minute), so it runs on its own thread, which is abandoned at the deadline.
Addresses LookUpUntil(const HostPort& place, Duration deadline) {
  if (Addresses numeric = LookUp(place, AI_NUMERICHOST); !numeric.list.empty()) return numeric;
  struct Shared {
    Mutex mutex;
    CondVar changed;
    std::optional<Addresses> result ABSL_GUARDED_BY(mutex);
  };
  auto shared = std::make_shared<Shared>();
  try {
    std::thread([shared, place] {
      Addresses result = LookUp(place, 0);
      MutexLock lock(shared->mutex);
      shared->result = std::move(result);
      shared->changed.NotifyAll();
    }).detach();
  } catch (const std::system_error& error) {
    return {.list = {}, .error = StrCat("no thread can be started: ", error.what())};
  }
  const auto end = std::chrono::steady_clock::now() + (deadline - Monotonic());
  MutexLock lock(shared->mutex);
  while (!shared->result) {
    if (!shared->changed.WaitUntil(shared->mutex, end) && !shared->result) {
      return {.list = {},
              .error = StrCat("the host '", place.host, "': the name server is silent")};
    }
  }
  return *std::move(shared->result);
}

// Returns whether a socket is connected to itself. If no process listens on a port of the ephemeral
// range, the kernel may choose this port as the source of the connection.
bool IsConnectedToItself(int fd) {
  sockaddr_storage self{}, peer{};
  socklen_t self_size = sizeof self, peer_size = sizeof peer;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&self), &self_size) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
         AddressText(self) == AddressText(peer);
}

StatusOr<UniqueFd> ConnectTo(const sockaddr_storage& address, Duration deadline) {
  UniqueFd socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "socket");
  const socklen_t size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  int error = 0;
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    error = errno;
    if (error == EINPROGRESS || error == EINTR) {
      if (!AwaitSocket(socket.get(), POLLOUT, deadline)) return Unavailable("no answer");
      socklen_t length = sizeof error;
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
  }
  if (error != 0) return Unavailable(std::strerror(error));
  if (IsConnectedToItself(socket.get())) return Unavailable(std::strerror(ECONNREFUSED));
  PrepareSocket(socket.get());
  return socket;
}

// Tries the addresses one after another. Each attempt may use an equal share of the remaining time.
StatusOr<UniqueFd> ConnectToAny(const std::vector<sockaddr_storage>& addresses, Duration deadline) {
  Status last = Unavailable("the host has no address");
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Duration now = Monotonic();
    const Duration share = (deadline - now) / static_cast<int64_t>(addresses.size() - i);
    StatusOr<UniqueFd> socket = ConnectTo(addresses[i], now + share);
    if (socket.ok()) return socket;
    last = socket.status();
  }
  return Unavailable(Message(last));
}

Status NoAnswer() {
  return DeadlineExceeded("no answer to the handshake");
}

Status SendAll(int fd, std::string_view bytes, Duration deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!AwaitSocket(fd, POLLOUT, deadline)) return NoAnswer();
    } else if (errno != EINTR) {
      return Unavailable("the connection broke during the handshake: ", std::strerror(errno));
    }
  }
  return OkStatus();
}

// Runs the whole hello on a connected socket.
Status Run(CallerHello& hello, int fd, Duration deadline) {
  char buffer[2048];
  while (!hello.done()) {
    RETURN_IF_ERROR(SendAll(fd, hello.TakeOutput(), deadline));
    const ssize_t got = recv(fd, buffer, std::min(hello.wanted(), sizeof buffer), 0);
    if (got > 0) {
      RETURN_IF_ERROR(hello.Feed({buffer, static_cast<size_t>(got)}));
    } else if (got == 0) {
      return Unavailable("the peer closed the connection during the handshake");
    } else if (errno == EAGAIN) {
      if (!AwaitSocket(fd, POLLIN, deadline)) return NoAnswer();
    } else if (errno != EINTR) {
      return Unavailable("the connection broke during the handshake: ", std::strerror(errno));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<Dialled> Dial(const std::string& address, const DialOptions& options) {
  const Duration deadline = Monotonic() + options.timeout;
  ASSIGN_OR_RETURN(const HostPort place, SplitAddress(address));
  const Addresses found = LookUpUntil(place, deadline);
  if (found.list.empty()) return Unavailable(found.error);
  ASSIGN_OR_RETURN(UniqueFd socket, ConnectToAny(found.list, deadline));
  CallerHello hello(options.key, options.claims, options.purpose, NewNonce());
  RETURN_IF_ERROR(Run(hello, socket.get(), deadline));
  return Dialled{std::move(socket), hello.peer_claims()};
}

StatusOr<Dialled> DialUntil(const std::string& address, const DialOptions& options) {
  const Duration deadline = Monotonic() + options.timeout;
  DialOptions attempt = options;
  for (Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    StatusOr<Dialled> result = Dial(address, attempt);
    if (result.ok() || !absl::IsUnavailable(result.status())) return result;
    const Duration left = deadline - Monotonic();
    std::this_thread::sleep_for(std::clamp(left, Duration(0), pause));
    attempt.timeout = deadline - Monotonic();
    if (attempt.timeout <= Duration(0)) {
      return Unavailable("no connection within ", FormatDuration(options.timeout), ": ",
                         Message(result.status()));
    }
  }
}

}  // namespace tfjob::wire
