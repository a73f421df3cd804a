// Connects processes over a network of their own: every host is a network namespace, and a bridge
// in this process's namespace connects the hosts. A test can cut a host off from all others.
#pragma once

#include <string>
#include <vector>

#include "runtime/wire/socket.h"

namespace tfjob::processes {

// Moves this process to a new network namespace, in which it may create networks. Call once, before
// the first thread starts. Returns "", or the reason if the machine does not allow this. The
// process then stays where it is.
std::string EnterNetworkNamespace();

// Only one network may exist at a time, and only after EnterNetworkNamespace has succeeded. Used by
// one thread. Processes on its hosts must exit before it is destroyed.
class TestNetwork {
 public:
  explicit TestNetwork(int hosts);
  ~TestNetwork();
  TestNetwork(const TestNetwork&) = delete;
  TestNetwork& operator=(const TestNetwork&) = delete;

  // Returns the address of a server on the host, "10.77.0.1:2222". This process can reach it as
  // well, unless the host is cut off.
  std::string AddressOf(int host) const;
  // Returns the words with which a command must begin to run on the host.
  std::vector<std::string> CommandOn(int host) const;
  // Makes all packets from and to the host disappear until Reconnect.
  void CutOff(int host);
  void Reconnect(int host);

 private:
  std::string PathOf(int host) const;

  std::vector<wire::UniqueFd> namespaces_;  // by host
};

}  // namespace tfjob::processes
