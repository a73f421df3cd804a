// Simulates the network between the tasks of a job. The bytes of a stream take time to arrive, keep
// their order, and may be lost when the stream breaks, even in the middle of a frame. Partitions
// hold bytes back, and processes may end without notice.
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
  double slow = 0.01;  // probability that a piece takes up to slow_most
  Duration slow_most{200'000};
  // The probability that a frame is cut at a random place. The second part may be cut again, with
  // the same probability. The pieces arrive one after the other.
  double cut = 0.2;
  // The maximum number of bytes that wait in each direction of a stream. At least the window of a
  // Connection.
  size_t capacity = size_t{32} << 20;
};

// The location of one end of a stream.
struct Place {
  int process = 0;   // the number of the process on the machine
  std::string host;  // the host's name; addresses have the form "host:port"
};

// The network. Owned by the simulation. Must outlive all processes. Connect and StopListening wait,
// so only threads of the machine may call them; no other function waits.
class Network {
 public:
  Network(Machine& machine, uint64_t seed, NetworkRules rules);
  ~Network();

  // Returns the connector for a process.
  std::unique_ptr<rpc::Connector> ConnectorOf(Place self);
  // Accepts streams for `handler` at "HOST:2222", on threads of the process.
  void Listen(const Place& self, const std::string& service, const rpc::Identity& identity,
              rpc::StreamHandler& handler);
  // Stops accepting streams. Waits for up to `grace` until open streams have ended, and then breaks
  // the remaining ones. Returns when the handler is no longer used.
  void StopListening(int process, Duration grace);

  // Breaks all streams of the process, and refuses its further attempts to connect. If `silently`
  // is true, the other ends do not notice this, and attempts to connect to the host get no answer
  // until a successor listens, as if the whole node had failed.
  void Kill(int process, bool silently);
  // Breaks a random stream. Returns its ends, or "" if there is none.
  std::string CutAny();
  // Breaks the next stream that has delivered only a part of a frame.
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
  // Returns the time from which frames can pass between the hosts. If this time is not in the
  // future, frames can pass now.
  Duration OpenAt(const std::string& a, const std::string& b) const;
  // Divides a frame into pieces, and dispatches them.
  void Send(const std::shared_ptr<Wire>& wire, int from, const std::string& frame);
  void Dispatch(const std::shared_ptr<Wire>& wire, int from, Piece piece);
  void Arrive(const std::shared_ptr<Wire>& wire, int from);
  // Closes the end at `side`. The other end notices this later.
  void Close(const std::shared_ptr<Wire>& wire, int side);
  // Breaks the stream. Both ends notice this after they have read the bytes that have arrived.
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
