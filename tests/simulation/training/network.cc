#include "tests/simulation/training/network.h"

#include <algorithm>
#include <optional>

#include "runtime/rpc/handshake.h"

namespace tfjob::simulation {
namespace {

constexpr Duration kHelloPatience{5s};  // the same as in wire::Listener

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

struct Network::Piece {
  Duration time{0};  // when the piece arrives
  std::string bytes;
  bool within = false;  // the frame continues in the next piece
  bool last = false;    // the sender has closed its end
};

// All simulated threads run on one thread of the operating system, and switches happen only when
// they wait or lock a mutex. The members therefore need no lock; the mutex is needed only for
// waiting.
struct Network::Wire {
  Place ends[2];                       // [0] the caller's, [1] the listener's
  std::deque<Piece> flying[2];         // pieces on their way, by sender
  std::deque<std::string> arrived[2];  // bytes that have arrived, by sender
  size_t bytes[2] = {0, 0};            // number of bytes in flying and arrived, by sender
  bool closed[2] = {false, false};     // by this end
  bool ended[2] = {false, false};      // this end has noticed that the other end is closed
  bool silent = false;                 // no further bytes arrive
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

// One end of a stream. Reads frames as a socket does: when BeginRead returns a frame, the payload
// may still be on its way, and the stream may break before the payload has arrived.
class Network::End : public rpc::Transport, private rpc::PayloadSource {
 public:
  End(Network& network, std::shared_ptr<Wire> wire, int side)
      : network_(network), wire_(std::move(wire)), side_(side) {}
  ~End() override { Cancel(); }

  Status Write(const rpc::OutgoingFrame& frame) override {
    const std::string bytes = Flatten(frame);
    if (wire_->bytes[side_] > network_.rules_.capacity) {
      MutexLock lock(wire_->mutex);
      while (!Broken() && wire_->bytes[side_] > network_.rules_.capacity)
        wire_->changed.Wait(wire_->mutex);
    }
    if (Broken()) return Unavailable("the connection is closed");
    network_.Send(wire_, side_, bytes);
    return OkStatus();
  }

  Status Read(rpc::IncomingFrame& frame) override {
    RETURN_IF_ERROR(BeginRead(frame));
    return frame.Load();
  }

  Status BeginRead(rpc::IncomingFrame& frame) override {
    RETURN_IF_ERROR(Fill(payload_));
    begin_ += payload_;
    payload_ = 0;
    RETURN_IF_ERROR(Fill(rpc::kHeaderBytes));
    ASSIGN_OR_RETURN(const size_t prefix, rpc::PrefixBytes(Buffered().first<rpc::kHeaderBytes>()));
    RETURN_IF_ERROR(Fill(prefix));
    frame.pieces.assign(1, Buffered().first(prefix));
    begin_ += prefix;
    ASSIGN_OR_RETURN(payload_, frame.ParsePrefix());
    frame.Await(payload_, *this);
    return OkStatus();
  }

  Duration Waiting() const override {
    return waiting_since_ ? network_.machine_.elapsed() - *waiting_since_ : Duration(0);
  }

  void Cancel() override { network_.Close(wire_, side_); }

 private:
  bool Broken() const { return wire_->closed[side_] || wire_->ended[side_]; }
  std::span<const std::byte> Buffered() const {
    return std::as_bytes(std::span(buffer_)).subspan(begin_);
  }

  Status Receive(std::span<std::byte> to) override {
    waiting_since_ = network_.machine_.elapsed();
    const Status status = Fill(to.size());
    waiting_since_.reset();
    RETURN_IF_ERROR(status);
    std::ranges::copy(Buffered().first(to.size()), to.begin());
    begin_ += to.size();
    payload_ -= to.size();
    return OkStatus();
  }

  std::span<const std::byte> Lend(size_t bytes) override {
    if (Buffered().size() < bytes) return {};
    const std::span<const std::byte> lent = Buffered().first(bytes);
    begin_ += bytes;
    payload_ -= bytes;
    return lent;
  }

  // Waits until at least `bytes` bytes are buffered. Bytes that were sent before the stream broke
  // are still delivered, unless this end has closed the stream.
  Status Fill(size_t bytes) {
    std::deque<std::string>& arrived = wire_->arrived[1 - side_];
    if (begin_ > 0 && Buffered().size() < bytes) {
      buffer_.erase(0, begin_);
      begin_ = 0;
    }
    while (Buffered().size() < bytes) {
      if (!Broken() && arrived.empty()) {
        MutexLock lock(wire_->mutex);
        while (!Broken() && arrived.empty()) wire_->changed.Wait(wire_->mutex);
      }
      if (wire_->closed[side_] || arrived.empty()) return Unavailable("the connection is closed");
      buffer_ += arrived.front();
      wire_->bytes[1 - side_] -= arrived.front().size();
      arrived.pop_front();
      wire_->changed.NotifyAll();
    }
    if (wire_->closed[side_]) return Unavailable("the connection is closed");
    return OkStatus();
  }

  Network& network_;
  const std::shared_ptr<Wire> wire_;
  const int side_;
  std::string buffer_;  // received bytes; those before begin_ have been read
  size_t begin_ = 0;
  size_t payload_ = 0;  // the number of unread bytes of the current payload
  std::optional<Duration> waiting_since_;
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

// ---- bytes

Duration Network::Delay() {
  const Duration most = dice_.Chance(rules_.slow) ? rules_.slow_most : rules_.delay_most;
  return dice_.Time(rules_.delay_least, most);
}

Duration Network::OpenAt(const std::string& a, const std::string& b) const {
  const auto found = parted_until_.find(std::minmax(a, b));
  return found == parted_until_.end() ? Duration(0) : found->second;
}

void Network::Send(const std::shared_ptr<Wire>& wire, int from, const std::string& frame) {
  size_t begin = 0;
  while (begin < frame.size()) {
    const size_t left = frame.size() - begin;
    const size_t count = dice_.Chance(rules_.cut)
                             ? static_cast<size_t>(dice_.Number(1, static_cast<int64_t>(left)))
                             : left;
    Dispatch(wire, from, {.bytes = frame.substr(begin, count), .within = count < left});
    begin += count;
  }
}

void Network::Dispatch(const std::shared_ptr<Wire>& wire, int from, Piece piece) {
  if (wire->silent) return;
  piece.time = machine_.elapsed() + Delay();
  std::deque<Piece>& flying = wire->flying[from];
  if (!flying.empty()) piece.time = std::max(piece.time, flying.back().time);
  wire->bytes[from] += piece.bytes.size();
  const Duration delay = piece.time - machine_.elapsed();
  flying.push_back(std::move(piece));
  machine_.After(delay, [this, wire, from] { Arrive(wire, from); });
}

void Network::Arrive(const std::shared_ptr<Wire>& wire, int from) {
  const Duration now = machine_.elapsed();
  const Duration open = OpenAt(wire->ends[0].host, wire->ends[1].host);
  std::deque<Piece>& flying = wire->flying[from];
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
      if (flying.front().within && std::exchange(tears_, false)) return Break(*wire);
    }
    flying.pop_front();
  }
  wire->changed.NotifyAll();
}

void Network::Close(const std::shared_ptr<Wire>& wire, int side) {
  if (std::exchange(wire->closed[side], true)) return;
  wire->changed.NotifyAll();
  // A reset may discard bytes that were sent before it; an orderly end does not.
  if (dice_.Chance(0.5)) wire->flying[side].clear();
  Dispatch(wire, side, {.last = true});
}

void Network::Break(Wire& wire) {
  wire.silent = true;
  wire.ended[0] = wire.ended[1] = true;
  wire.changed.NotifyAll();
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
  Break(*wire);
  return wire->ends[0].host + " and " + wire->ends[1].host;
}

void Network::Part(const std::string& a, const std::string& b, Duration time) {
  Duration& until = parted_until_[std::minmax(a, b)];
  until = std::max(until, machine_.elapsed() + time);
}

}  // namespace tfjob::simulation
