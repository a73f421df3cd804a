// Simulates the network between the tasks of a job: streams whose bytes take time, keep their
// order, and are lost when the stream breaks, perhaps in the middle of a frame; partitions, which
// hold bytes back; and processes that end without notice.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/rpc/transport.h"
#include "tests/simulation/machine/machine.h"
#include "tests/simulation/training/dice.h"

namespace tfjob::simulation {

struct NetworkRules {
  Duration delay_least{50};
  Duration delay_most{1000};
  double slow = 0.01;  // a piece takes up to slow_most with this probability
  Duration slow_most{200'000};
  // The probability that a frame is cut at a random place. The rest may be cut again, with the same
  // probability. The pieces arrive one after the other.
  double cut = 0.2;
  // The number of bytes that may wait in each direction of a stream; at least the window of a
  // Connection.
  size_t capacity = size_t{32} << 20;
};

// The place of one end of a stream.
struct Place {
  int process = 0;   // its number on the machine
  std::string host;  // the host's name; addresses have the form "host:port"
};

// Owned by the simulation. Connect and StopListening wait, so only threads of the machine may call
// them; no other function waits. Must outlive all processes.
class Network {
 public:
  Network(Machine& machine, uint64_t seed, NetworkRules rules);
  ~Network();

  // Returns the connector for a process.
  std::unique_ptr<rpc::Connector> ConnectorOf(Place self);
  // Accepts streams for `handler` at "HOST:2222", on threads of the process.
  void Listen(const Place& self, const std::string& service, const rpc::Identity& identity,
              rpc::StreamHandler& handler);
  // Accepts no more streams, lets open streams end for up to `grace`, then breaks the rest. Returns
  // once the handler is no longer used.
  void StopListening(int process, Duration grace);

  // Breaks all streams of the process and refuses its own attempts to connect. If `silently` is
  // true, the other ends do not notice, and attempts to reach the host are not answered until a
  // successor listens, as if the whole node had failed.
  void Kill(int process, bool silently);
  // Breaks a random stream. Returns its ends, or "" if there is none.
  std::string CutAny();
  // Breaks the next stream on which only a part of a frame has arrived.
  void TearNext() { tears_ = true; }
  // Delivers nothing between the two hosts for `time`. Frames are kept and delivered afterwards.
  void Part(const std::string& a, const std::string& b, Duration time);

 private:
  class End;
  class HostConnector;
  struct Piece;
  struct Wire;
  struct Listener;
  using Pair = std::pair<std::string, std::string>;

  Duration Delay();
  // Returns the time from which frames can pass between the hosts. If it is not in the future, they
  // can pass now.
  Duration OpenAt(const std::string& a, const std::string& b) const;
  // Divides a frame into pieces, and dispatches them.
  void Send(const std::shared_ptr<Wire>& wire, int from, const std::string& frame);
  void Dispatch(const std::shared_ptr<Wire>& wire, int from, Piece piece);
  void Arrive(const std::shared_ptr<Wire>& wire, int from);
  // Closes the end at `side`. The other end learns of this later.
  void Close(const std::shared_ptr<Wire>& wire, int side);
  // Breaks the stream. Both ends notice this once they have read what has arrived.
  static void Break(Wire& wire);
  StatusOr<rpc::OpenStream> Connect(const Place& self, const std::string& address,
                                    const std::string& service, const rpc::Identity& identity,
                                    Duration timeout);
  StatusOr<std::shared_ptr<Listener>> Reach(const Place& self, const std::string& address,
                                            Duration deadline);
  void Serve(const std::shared_ptr<Listener>& listener, const std::string& peer_host,
             rpc::Transport& end);
  std::vector<std::shared_ptr<Wire>> OpenWires();

  Machine& machine_;
  const NetworkRules rules_;
  Dice dice_;
  std::map<std::string, std::shared_ptr<Listener>> reachable_;  // by address
  std::map<int, std::shared_ptr<Listener>> listeners_;          // by process
  std::set<std::string> dark_;                                  // addresses that do not answer
  std::set<int> killed_;
  std::map<Pair, Duration> parted_until_;
  std::list<std::weak_ptr<Wire>> wires_;
  bool tears_ = false;
};

}  // namespace tfjob::simulation
