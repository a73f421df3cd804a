// Breaks connections of this process, to simulate a network failure in tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <string>

namespace tfjob::wire {

// Shuts down all TCP connections of this process whose own or other end is at this port. Returns
// the number of sockets.
inline int BreakConnections(const std::string& address) {
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  const auto is_at = [port](int fd, int (*name)(int, sockaddr*, socklen_t*)) {
    sockaddr_in end = {};
    socklen_t size = sizeof(end);
    return name(fd, reinterpret_cast<sockaddr*>(&end), &size) == 0 && end.sin_family == AF_INET &&
           ntohs(end.sin_port) == port;
  };
  const auto own = [](int fd, sockaddr* end, socklen_t* size) {
    return getsockname(fd, end, size);
  };
  const auto other = [](int fd, sockaddr* end, socklen_t* size) {
    return getpeername(fd, end, size);
  };
  const auto any = [](int fd) {
    sockaddr_storage end;
    socklen_t size = sizeof(end);
    return getpeername(fd, reinterpret_cast<sockaddr*>(&end), &size) == 0;
  };
  int broken = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    if (!any(fd) || !(is_at(fd, own) || is_at(fd, other))) continue;  // e.g. a listening socket
    broken += shutdown(fd, SHUT_RDWR) == 0 ? 1 : 0;
  }
  return broken;
}

}  // namespace tfjob::wire
