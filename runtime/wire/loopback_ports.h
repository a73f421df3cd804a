// Chooses consecutive ports on this machine for the tasks of a job, such that no two jobs get the
// same port.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::wire {

struct PortRange {
  int32_t first = 0;
  int32_t last = 0;
};

// Returns the ports from 10000 on that the kernel never assigns on its own, that is, those outside
// its range for outgoing connections. `ephemeral` is the content of
// /proc/sys/net/ipv4/ip_local_port_range ("32768\t60999"). If `ephemeral` cannot be parsed, returns
// all ports from 10000 on.
std::vector<PortRange> OutsideEphemeral(const std::string& ephemeral);

// Assigns ranges of consecutive ports that are free at that moment. The ranges stay reserved for
// the lifetime of the object: other LoopbackPorts on this machine, in any process, choose different
// ports.
class LoopbackPorts {
 public:
  LoopbackPorts();
  ~LoopbackPorts();
  LoopbackPorts(const LoopbackPorts&) = delete;
  LoopbackPorts& operator=(const LoopbackPorts&) = delete;

  // Returns the first of `count` consecutive ports, or ResourceExhausted if there is no such range.
  StatusOr<int32_t> Choose(int32_t count);

 private:
  bool Reserve(int32_t first, int32_t count);

  std::vector<PortRange> ranges_;
  std::vector<int> reservations_;  // sockets whose names mark blocks of ports as reserved
};

}  // namespace tfjob::wire
