#include "tests/simulation/training/network.h"

#include <algorithm>
#include <vector>

#include "runtime/rpc/handshake.h"

namespace tfjob::simulation {
namespace {

constexpr Duration kHelloPatience{5s};  // the same as wire::Listener's

std::string Flatten(const rpc::OutgoingFrame& frame) {
  std::string wire;
  rpc::AppendPrefix(frame, wire);
  for (const rpc::Segment& segment : frame.segments) {
    wire.append(reinterpret_cast<const char*>(segment.bytes.data()), segment.bytes.size());
    if (segment.release != nullptr) segment.release(segment.argument);
  }
  return wire;
}

}  // namespace

// All threads run on one thread of the operating system and are switched only when they wait, so
// the members need no lock. The mutex is only needed for waiting.
struct Network::Wire {
  struct Frame {
    Duration time{0};
    std::string bytes;
    bool last = false;  // the sender has closed its end
  };
  Place ends[2];                       // [0] the caller's, [1] the listener's
  std::deque<Frame> flying[2];         // by sender
  std::deque<std::string> arrived[2];  // by sender
  size_t bytes[2] = {0, 0};            // flying or arrived
  bool closed[2] = {false, false};     // by this end
  bool ended[2] = {false, false};      // this end knows that the other end is closed
  bool silent = false;                 // nothing arrives any more
  Mutex mutex;
  CondVar changed;
};

struct Network::Listener {
  Place place;
  std::string service;
  rpc::Identity identity;
  rpc::StreamHandler* handler = nullptr;
  std::list<rpc::Transport*> streams;
  Mutex mutex;
  CondVar changed;
};

class Network::End : public rpc::Transport {
 public:
  End(Network& network, std::shared_ptr<Wire> wire, int side)
      : network_(network), wire_(std::move(wire)), side_(side) {}
  ~End() override { Cancel(); }

  Status Write(const rpc::OutgoingFrame& frame) override {
    std::string bytes = Flatten(frame);
    if (wire_->bytes[side_] > network_.rules_.capacity) {
      MutexLock lock(wire_->mutex);
      while (!Broken() && wire_->bytes[side_] > network_.rules_.capacity)
        wire_->changed.Wait(wire_->mutex);
    }
    if (Broken()) return Unavailable("the connection is closed");
    network_.Dispatch(wire_, side_, std::move(bytes), false);
    return OkStatus();
  }

  Status Read(rpc::IncomingFrame& frame) override {
    std::deque<std::string>& arrived = wire_->arrived[1 - side_];
    if (!Broken() && arrived.empty()) {
      MutexLock lock(wire_->mutex);
      while (!Broken() && arrived.empty()) wire_->changed.Wait(wire_->mutex);
    }
    if (wire_->closed[side_] || arrived.empty()) return Unavailable("the connection is closed");
    current_ = std::move(arrived.front());
    arrived.pop_front();
    wire_->bytes[1 - side_] -= current_.size();
    wire_->changed.NotifyAll();
    frame.pieces.assign(1, std::as_bytes(std::span(current_)));
    return frame.Parse();
  }

  void Cancel() override { network_.Close(wire_, side_); }

 private:
  bool Broken() const { return wire_->closed[side_] || wire_->ended[side_]; }

  Network& network_;
  const std::shared_ptr<Wire> wire_;
  const int side_;
  std::string current_;
};

class Network::HostConnector : public rpc::Connector {
 public:
  HostConnector(Network& network, Place self) : network_(network), self_(std::move(self)) {}
  StatusOr<rpc::OpenStream> Connect(const std::string& address, const std::string& service,
                                    const rpc::Identity& identity, Duration timeout) override {
    StatusOr<rpc::OpenStream> stream = network_.Connect(self_, address, service, identity, timeout);
    if (!stream.ok()) return Annotate(stream.status(), address);
    return stream;
  }

 private:
  Network& network_;
  const Place self_;
};

Network::Network(Machine& machine, uint64_t seed, NetworkRules rules)
    : machine_(machine), rules_(rules), dice_(seed) {}

Network::~Network() = default;

std::unique_ptr<rpc::Connector> Network::ConnectorOf(Place self) {
  return std::make_unique<HostConnector>(*this, std::move(self));
}

// ---- frames

Duration Network::Delay() {
  const Duration most = dice_.Chance(rules_.slow) ? rules_.slow_most : rules_.delay_most;
  return dice_.Time(rules_.delay_least, most);
}

Duration Network::OpenAt(const std::string& a, const std::string& b) const {
  const auto found = parted_until_.find(std::minmax(a, b));
  return found == parted_until_.end() ? Duration(0) : found->second;
}

void Network::Dispatch(const std::shared_ptr<Wire>& wire, int from, std::string bytes, bool last) {
  if (wire->silent) return;
  Duration time = machine_.elapsed() + Delay();
  std::deque<Wire::Frame>& flying = wire->flying[from];
  if (!flying.empty()) time = std::max(time, flying.back().time);
  wire->bytes[from] += bytes.size();
  flying.push_back({time, std::move(bytes), last});
  machine_.After(time - machine_.elapsed(), [this, wire, from] { Arrive(wire, from); });
}

void Network::Arrive(const std::shared_ptr<Wire>& wire, int from) {
  const Duration now = machine_.elapsed();
  const Duration open = OpenAt(wire->ends[0].host, wire->ends[1].host);
  std::deque<Wire::Frame>& flying = wire->flying[from];
  if (wire->silent || flying.empty()) return;
  if (open > now) {
    machine_.After(open - now + Delay(), [this, wire, from] { Arrive(wire, from); });
    return;
  }
  while (!flying.empty() && flying.front().time <= now) {
    if (flying.front().last) {
      wire->ended[1 - from] = true;
    } else {
      wire->arrived[from].push_back(std::move(flying.front().bytes));
    }
    flying.pop_front();
  }
  wire->changed.NotifyAll();
}

void Network::Close(const std::shared_ptr<Wire>& wire, int side) {
  if (std::exchange(wire->closed[side], true)) return;
  wire->changed.NotifyAll();
  // A reset overtakes what was sent before; an orderly end does not.
  if (dice_.Chance(0.5)) wire->flying[side].clear();
  Dispatch(wire, side, "", true);
}

// ---- connecting

StatusOr<std::shared_ptr<Network::Listener>> Network::Reach(const Place& self,
                                                            const std::string& address,
                                                            Duration deadline) {
  const std::string host = address.substr(0, address.find(':'));
  machine_.Sleep(Delay() + Delay());
  for (;;) {
    if (killed_.contains(self.process)) return Unavailable("the process was killed");
    const Duration now = machine_.elapsed();
    const Duration open = OpenAt(self.host, host);
    if (now >= deadline) return DeadlineExceeded("no answer");
    if (open <= now && !dark_.contains(address)) break;
    const Duration next = dark_.contains(address) ? deadline : std::min(deadline, open);
    machine_.Sleep(std::min<Duration>(next - now, 200ms));
  }
  const auto found = reachable_.find(address);
  if (found == reachable_.end()) return Unavailable("connection refused");
  return found->second;
}

StatusOr<rpc::OpenStream> Network::Connect(const Place& self, const std::string& address,
                                           const std::string& service,
                                           const rpc::Identity& identity, Duration timeout) {
  const Duration deadline = machine_.elapsed() + timeout;
  ASSIGN_OR_RETURN(const std::shared_ptr<Listener> listener, Reach(self, address, deadline));
  auto wire = std::make_shared<Wire>();
  wire->ends[0] = self;
  wire->ends[1] = listener->place;
  wires_.push_back(wire);
  auto served = std::make_shared<End>(*this, wire, 1);
  listener->streams.push_back(served.get());
  machine_.Spawn(listener->place.process, [this, listener, served, host = self.host] {
    Serve(listener, host, *served);
    served->Cancel();
    listener->streams.remove(served.get());
    listener->changed.NotifyAll();
  });
  auto transport = std::make_unique<End>(*this, wire, 0);
  rpc::HandshakeTimer timer(*transport, deadline - machine_.elapsed());
  StatusOr<rpc::Identity> peer = rpc::Introduce(*transport, service, identity);
  if (!peer.ok() && timer.expired()) return DeadlineExceeded("no answer to the handshake");
  if (!peer.ok()) return peer.status();
  return rpc::OpenStream{std::move(transport), *std::move(peer)};
}

void Network::Serve(const std::shared_ptr<Listener>& listener, const std::string& peer_host,
                    rpc::Transport& end) {
  StatusOr<rpc::Admission> admission = [&] {
    rpc::HandshakeTimer timer(end, kHelloPatience);
    return rpc::Admit(end, listener->identity, [&](const std::string& name) {
      return name == listener->service ? listener->handler : nullptr;
    });
  }();
  if (admission.ok()) listener->handler->Serve(admission->caller.identity, peer_host, end);
}

void Network::Listen(const Place& self, const std::string& service, const rpc::Identity& identity,
                     rpc::StreamHandler& handler) {
  if (killed_.contains(self.process)) return;
  auto listener = std::make_shared<Listener>();
  listener->place = self;
  listener->service = service;
  listener->identity = identity;
  listener->handler = &handler;
  const std::string address = self.host + ":2222";
  dark_.erase(address);
  reachable_[address] = listeners_[self.process] = listener;
}

void Network::StopListening(int process, Duration grace) {
  const auto found = listeners_.find(process);
  if (found == listeners_.end()) return;
  const std::shared_ptr<Listener> listener = found->second;
  listeners_.erase(found);
  std::erase_if(reachable_, [&](const auto& entry) { return entry.second == listener; });
  MutexLock lock(listener->mutex);
  const SteadyTime deadline = SteadyNow() + grace;
  while (!listener->streams.empty() && listener->changed.WaitUntil(listener->mutex, deadline)) {
  }
  for (rpc::Transport* stream : listener->streams) stream->Cancel();
  while (!listener->streams.empty()) listener->changed.Wait(listener->mutex);
}

// ---- faults

std::vector<std::shared_ptr<Network::Wire>> Network::OpenWires() {
  std::vector<std::shared_ptr<Wire>> open;
  std::erase_if(wires_, [&](const std::weak_ptr<Wire>& held) {
    const std::shared_ptr<Wire> wire = held.lock();
    if (wire != nullptr && !wire->closed[0] && !wire->closed[1]) open.push_back(wire);
    return wire == nullptr;
  });
  return open;
}

void Network::Kill(int process, bool silently) {
  killed_.insert(process);
  std::erase_if(reachable_, [&](const auto& entry) {
    const bool own = entry.second->place.process == process;
    if (own && silently) dark_.insert(entry.first);
    return own;
  });
  for (const std::shared_ptr<Wire>& wire : OpenWires()) {
    for (int side : {0, 1}) {
      if (wire->ends[side].process != process) continue;
      if (silently) wire->silent = true;
      Close(wire, side);
    }
  }
}

std::string Network::CutAny() {
  const std::vector<std::shared_ptr<Wire>> open = OpenWires();
  if (open.empty()) return "";
  const std::shared_ptr<Wire>& wire =
      open[static_cast<size_t>(dice_.Number(0, static_cast<int64_t>(open.size()) - 1))];
  wire->silent = true;
  wire->ended[0] = wire->ended[1] = true;
  wire->changed.NotifyAll();
  return wire->ends[0].host + " and " + wire->ends[1].host;
}

void Network::Part(const std::string& a, const std::string& b, Duration time) {
  Duration& until = parted_until_[std::minmax(a, b)];
  until = std::max(until, machine_.elapsed() + time);
}

}  // namespace tfjob::simulation
