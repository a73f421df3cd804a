#include "tests/processes/test_network.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "runtime/base/check.h"
#include "runtime/base/status.h"

namespace tfjob::processes {
namespace {

constexpr char kIp[] = "/usr/sbin/ip", kEnter[] = "/usr/bin/nsenter";
constexpr char kBridge[] = "tests";

bool Try(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

void Run(const std::string& command) {
  ENFORCE(Try(command), command);
}

// Without root, a user namespace is needed, whose root may create network namespaces.
bool Unshare() {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (user == 0) return unshare(CLONE_NEWNET) == 0;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return true;
}

// A thread enters the namespace, so that this one stays where it is.
wire::UniqueFd NewNamespace() {
  wire::UniqueFd made;
  std::thread([&made] {
    if (unshare(CLONE_NEWNET) == 0)
      made = wire::UniqueFd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }).join();
  ENFORCE(made.valid(), "a network namespace can be created");
  return made;
}

std::string LinkOf(int host) {
  return StrCat("host", host);
}

}  // namespace

std::string EnterNetworkNamespace() {
  for (const char* program : {kIp, kEnter}) {
    if (access(program, X_OK) != 0) return StrCat(program, " is missing");
  }
  if (!Unshare()) return StrCat("no network namespace: ", std::strerror(errno));
  if (!Try(StrCat(kIp, " link set lo up"))) return "the loopback interface does not start";
  const std::string bridge = StrCat(kIp, " link add ", kBridge, " type bridge");
  if (!Try(bridge)) return "no bridge can be created";
  Run(StrCat(kIp, " link delete ", kBridge));
  return "";
}

TestNetwork::TestNetwork(int hosts) {
  Run(StrCat(kIp, " link add ", kBridge, " type bridge forward_delay 0"));
  Run(StrCat(kIp, " address add 10.77.0.254/24 dev ", kBridge));
  Run(StrCat(kIp, " link set ", kBridge, " up"));
  for (int host = 0; host < hosts; ++host) {
    namespaces_.push_back(NewNamespace());
    Run(StrCat(kIp, " link add ", LinkOf(host), " type veth peer name eth0 netns ", PathOf(host)));
    Run(StrCat(kIp, " link set ", LinkOf(host), " master ", kBridge, " up"));
    const std::string on_host = StrCat(kEnter, " --net=", PathOf(host), " ", kIp);
    Run(StrCat(on_host, " address add 10.77.0.", host + 1, "/24 dev eth0"));
    Run(StrCat(on_host, " link set eth0 up"));
    Run(StrCat(on_host, " link set lo up"));
  }
}

TestNetwork::~TestNetwork() {
  for (size_t host = 0; host < namespaces_.size(); ++host)
    Run(StrCat(kIp, " link delete ", LinkOf(static_cast<int>(host))));
  Run(StrCat(kIp, " link delete ", kBridge));
}

std::string TestNetwork::PathOf(int host) const {
  return StrCat("/proc/", getpid(), "/fd/", namespaces_[static_cast<size_t>(host)].get());
}

std::string TestNetwork::AddressOf(int host) const {
  return StrCat("10.77.0.", host + 1, ":2222");
}

std::vector<std::string> TestNetwork::CommandOn(int host) const {
  return {kEnter, StrCat("--net=", PathOf(host))};
}

// The host keeps its carrier, as behind a switch that has failed: the bridge drops its packets.
void TestNetwork::CutOff(int host) {
  Run(StrCat("/usr/sbin/bridge link set dev ", LinkOf(host), " state 0"));
}

void TestNetwork::Reconnect(int host) {
  Run(StrCat("/usr/sbin/bridge link set dev ", LinkOf(host), " state 3"));
}

}  // namespace tfjob::processes
