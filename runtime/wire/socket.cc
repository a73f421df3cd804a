#include "runtime/wire/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"

namespace tfjob::wire {
namespace {

struct Endpoint {
  std::string host;
  int port = 0;
  bool six = false;
};

Endpoint EndpointOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    return {text, ntohs(four.sin_port), false};
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, sizeof text);
    return {text, ntohs(six.sin6_port), false};
  }
  inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  return {text, ntohs(six.sin6_port), true};
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

void UniqueFd::Close() {
  if (fd_ >= 0) close(Release());
}

StatusOr<HostPort> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return InvalidArgument("the address '", address, "': expected host:port");
  }
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return HostPort{std::move(host), StrCat(port)};
}

std::string HostText(const sockaddr_storage& address) {
  return EndpointOf(address).host;
}

std::string AddressText(const sockaddr_storage& address) {
  const Endpoint end = EndpointOf(address);
  return end.six ? StrCat("[", end.host, "]:", end.port) : StrCat(end.host, ":", end.port);
}

void PrepareSocket(int fd) {
  // Ignore a failure, because the option only tunes the connection.
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool AwaitSocket(int fd, short events, Duration deadline) {
  while (true) {
    const Duration left = deadline - RealClock().Monotonic();
    if (left <= Duration(0)) return false;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::min<int64_t>(ms, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next call on the socket returns the error
  }
}

}  // namespace tfjob::wire
