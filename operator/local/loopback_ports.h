// Ports of this machine for the tasks of a job: a run of neighbours, chosen once a job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::local {

struct PortRange {
  int32_t first = 0;
  int32_t last = 0;
};

// The ports from 10000 on that the kernel gives to nobody by itself: those outside of its range for
// outgoing connections, whose text ("32768\t60999") is what /proc/sys/net/ipv4/ip_local_port_range
// holds.
std::vector<PortRange> OutsideEphemeral(const std::string& ephemeral);

// Gives out runs of ports which are free at that moment. What it gave stays reserved for its
// lifetime: other LoopbackPorts of this machine, in any process, choose others.
class LoopbackPorts {
 public:
  LoopbackPorts();
  ~LoopbackPorts();
  LoopbackPorts(const LoopbackPorts&) = delete;
  LoopbackPorts& operator=(const LoopbackPorts&) = delete;

  // The first of `count` neighbouring ports. ResourceExhausted when there is no such run.
  StatusOr<int32_t> Choose(int32_t count);

 private:
  bool Reserve(int32_t first, int32_t count);

  std::vector<PortRange> ranges_;
  std::vector<int> reservations_;  // sockets whose names say that a block of ports is taken
};

}  // namespace tfjob::local
