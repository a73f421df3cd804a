#include "runtime/wire/bind.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>

namespace tfjob::wire {
namespace {

constexpr int kBacklog = 1024;

Status BindError(int error, const std::string& host, int port) {
  if (error == EADDRNOTAVAIL) {
    return InvalidArgument(host, ":", port, ": this machine has no such address");
  }
  if (error == EACCES) return PermissionDenied(host, ":", port, ": a privileged port");
  if (error != EADDRINUSE) return ErrnoStatus(error, StrCat("listen on ", host, ":", port));
  return Unavailable(host, ":", port, ": the port is taken by another process; stop it ",
                     "(ss -ltnp shows it) or give this task another port in TF_CONFIG");
}

// Returns a listening socket or, on failure, an invalid descriptor with the reason in errno.
UniqueFd ListenOn(const sockaddr* address, socklen_t size) {
  UniqueFd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fd;
  const int on = 1, off = 0;
  // Permit a restarted task to bind its port while old connections still linger.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->sa_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (bind(fd.get(), address, size) != 0 || listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    fd.Close();
    errno = error;
  }
  return fd;
}

// Listens on all addresses. Where the kernel has IPv6, one socket serves both families.
UniqueFd ListenOnAll(int port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<uint16_t>(port));
  UniqueFd fd = ListenOn(reinterpret_cast<const sockaddr*>(&six), sizeof six);
  if (fd.valid() || (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL)) return fd;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<uint16_t>(port));
  return ListenOn(reinterpret_cast<const sockaddr*>(&four), sizeof four);
}

StatusOr<UniqueFd> ListenOnHost(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (int error = getaddrinfo(host.c_str(), StrCat(port).c_str(), &hints, &found); error != 0) {
    return InvalidArgument(host, ": ", gai_strerror(error));
  }
  UniqueFd fd = ListenOn(found->ai_addr, found->ai_addrlen);
  const int error = errno;
  freeaddrinfo(found);
  errno = error;
  return fd;
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  // IPv4 and IPv6 addresses store the port at the same offset.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

StatusOr<BoundSocket> Bind(const std::string& host, int port) {
  UniqueFd fd;
  if (host == "0.0.0.0") {
    fd = ListenOnAll(port);
  } else {
    ASSIGN_OR_RETURN(fd, ListenOnHost(host, port));
  }
  if (!fd.valid()) return BindError(errno, host, port);
  const int bound = PortOf(fd.get());
  return BoundSocket{std::move(fd), bound};
}

}  // namespace tfjob::wire
