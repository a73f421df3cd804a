// Owns the task's only port. One thread accepts connections, runs the hello on all of them
// concurrently, and hands over a connection once its peer has proven the job's key.
//
// An unproven connection uses a descriptor and at most kListenerHelloBytes, but no thread. It is
// closed after `timeout`, or as soon as there are `max_unproven` newer unproven connections. The
// reason is logged once per source address.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/base/source_log.h"
#include "runtime/wire/hello.h"
#include "runtime/wire/socket.h"

namespace tfjob::wire {

// A connection whose hello has succeeded.
struct ProvenPeer {
  UniqueFd socket;      // non-blocking; no bytes after the hello have been read
  std::string address;  // "10.1.2.3:5000"
  std::string claims;
  Purpose purpose{};
};

struct ListenerOptions {
  // "0.0.0.0" listens on all IPv4 and IPv6 addresses of the machine.
  std::string host = "0.0.0.0";
  int port = 0;               // 0 for any free port
  std::optional<JobKey> key;  // if nullopt, any peer is accepted
  std::string claims;         // of this task, at most kMaxClaimBytes
  // `check` and `on_peer` are called on the listener's thread, and must return at once.
  ListenerHello::Check check;
  std::function<void(ProvenPeer)> on_peer;
  Duration timeout{5s};
  size_t max_unproven = 256;
  // Replaces the log, for tests. Receives the source, the reason why its connection was closed, and
  // the number of closed connections that were not logged.
  std::function<void(const std::string&, const std::string&, uint64_t)> on_closed;
};

class Listener {
 public:
  // Binds without port reuse and starts to accept connections. Returns Unavailable, with a message
  // that names host:port and says what to do, if the port is taken (an earlier process of this task
  // may still have it). Returns InvalidArgument if the host is not an address of this machine, and
  // PermissionDenied if the port is privileged.
  static StatusOr<std::unique_ptr<Listener>> Start(ListenerOptions options);
  ~Listener();
  // Closes the port and all unproven connections. Afterwards, no function of the options is called.
  // The destructor also calls Stop.
  void Stop();

  int port() const { return port_; }

 private:
  struct Unproven {
    UniqueFd socket;
    std::string host;
    std::string address;
    Duration deadline;
    ListenerHello hello;
  };
  // Connections in the order in which they were accepted, so the first one is the next to time out.
  using Connections = std::map<uint64_t, Unproven>;

  Listener(ListenerOptions options, UniqueFd socket, UniqueFd poll, UniqueFd stop, int port);
  void Run();
  int PollTimeoutMs() const;
  void AcceptAll();
  bool AcceptOne();
  void OutOfDescriptors();
  void Add(UniqueFd socket, const sockaddr_storage& address);
  void Read(uint64_t id);
  static bool Answer(Unproven& peer);
  void CloseOverdue();
  void Close(Connections::iterator connection, const std::string& why);
  void HandOver(Connections::iterator connection);
  bool Watch(int fd, uint64_t id) const;

  const ListenerOptions options_;
  UniqueFd socket_;
  const UniqueFd poll_, stop_;
  const int port_;
  // Used only by the listener's thread.
  Connections unproven_;
  uint64_t next_id_;
  std::optional<Duration> paused_until_;  // set when no descriptors were left
  SourceLog log_;
  std::thread thread_;
};

}  // namespace tfjob::wire
