#include "runtime/wire/loopback_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <sstream>

#include "runtime/base/file.h"

namespace tfjob::wire {
namespace {

constexpr int32_t kFirst = 10'000, kLast = 65'535;
constexpr int32_t kBlock = 32;  // number of ports per reservation

bool IsFree(int32_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);  // conflicts with a listener on any address
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return free;
}

// Binds a socket to a name in the abstract namespace. The first process that binds the name owns it
// until the process closes the socket or exits. Returns the socket, or -1 if another process owns
// the name.
int ReserveBlock(int32_t first) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = StrCat("tfjob-ports-", first);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

std::vector<PortRange> OutsideEphemeral(const std::string& ephemeral) {
  std::istringstream numbers(ephemeral);
  int32_t low = 0, high = 0;
  if (!(numbers >> low >> high) || low > high) return {{kFirst, kLast}};
  std::vector<PortRange> ranges;
  if (low > kFirst) ranges.push_back({kFirst, std::min(low - 1, kLast)});
  if (high < kLast) ranges.push_back({std::max(high + 1, kFirst), kLast});
  return ranges;
}

LoopbackPorts::LoopbackPorts()
    : ranges_(OutsideEphemeral(ReadFile("/proc/sys/net/ipv4/ip_local_port_range").value_or(""))) {}

LoopbackPorts::~LoopbackPorts() {
  for (const int fd : reservations_) close(fd);
}

bool LoopbackPorts::Reserve(int32_t first, int32_t count) {
  std::vector<int> taken;
  bool ok = true;
  for (int32_t block = first; ok && block < first + count; block += kBlock) {
    const int fd = ReserveBlock(block);
    ok = fd >= 0;
    if (ok) taken.push_back(fd);
  }
  for (int32_t port = first; ok && port < first + count; ++port) ok = IsFree(port);
  if (ok) {
    reservations_.insert(reservations_.end(), taken.begin(), taken.end());
  } else {
    for (const int fd : taken) close(fd);
  }
  return ok;
}

StatusOr<int32_t> LoopbackPorts::Choose(int32_t count) {
  for (const PortRange& range : ranges_) {
    int32_t first = (range.first + kBlock - 1) / kBlock * kBlock;
    for (; first + count - 1 <= range.last; first += kBlock) {
      if (Reserve(first, count)) return first;
    }
  }
  return ResourceExhausted("no ", count,
                           " consecutive ports are free between 10000 and 65535, outside of "
                           "/proc/sys/net/ipv4/ip_local_port_range");
}

}  // namespace tfjob::wire
