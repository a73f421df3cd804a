// Defines functions for TCP sockets, and an owner of a file descriptor.
#pragma once

#include <sys/socket.h>

#include <string>
#include <utility>

#include "runtime/base/clock.h"

namespace tfjob::wire {

// Owns a file descriptor; -1 if it has none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Gives up ownership and returns the descriptor.
  int Release() { return std::exchange(fd_, -1); }
  void Close();

 private:
  int fd_ = -1;
};

struct HostPort {
  std::string host;  // without brackets
  std::string port;
};
// Splits "host:port", "1.2.3.4:port" or "[::1]:port". Returns InvalidArgument for any other form.
StatusOr<HostPort> SplitAddress(const std::string& address);

// Returns the host of a socket address, or its host and port: "10.1.2.3:5000", "[::1]:5000". An
// IPv4-mapped IPv6 address is shown as IPv4.
std::string HostText(const sockaddr_storage& address);
std::string AddressText(const sockaddr_storage& address);

// Sets the option that every connection between tasks needs: TCP_NODELAY, so that small frames are
// not delayed. Does not set TCP_USER_TIMEOUT, because it would also close the connection to a live
// peer that does not read for a while, such as a group member that is still computing. The leases
// of streams and groups, the deadlines of gRPC calls and gRPC's keepalive detect silent peers.
void PrepareSocket(int fd);

// Waits until the socket is ready for `events` (poll.h). Returns false at the deadline, which is a
// time on the clock RealClock().Monotonic().
bool AwaitSocket(int fd, short events, Duration deadline);

}  // namespace tfjob::wire
