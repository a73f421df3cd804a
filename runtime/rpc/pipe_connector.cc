#include "runtime/rpc/pipe_connector.h"

#include <deque>
#include <utility>

#include "runtime/rpc/handshake.h"

namespace tfjob::rpc {
namespace {

// Two queues of whole frames, one per direction.
struct Pipe {
  explicit Pipe(size_t capacity) : most_bytes(capacity) {}

  const size_t most_bytes;  // per direction
  Mutex mutex;
  CondVar changed;
  std::deque<std::string> frames[2] ABSL_GUARDED_BY(mutex);
  size_t bytes[2] ABSL_GUARDED_BY(mutex) = {0, 0};
  bool broken ABSL_GUARDED_BY(mutex) = false;
};

std::string Flatten(const OutgoingFrame& frame) {
  std::string wire;
  AppendPrefix(frame, wire);
  for (const Segment& segment : frame.segments) {
    wire.append(reinterpret_cast<const char*>(segment.bytes.data()), segment.bytes.size());
    if (segment.release != nullptr) segment.release(segment.argument);
  }
  return wire;
}

class PipeEnd : public Transport {
 public:
  PipeEnd(std::shared_ptr<Pipe> pipe, int side) : pipe_(std::move(pipe)), side_(side) {}
  ~PipeEnd() override { Cancel(); }

  Status Write(const OutgoingFrame& frame) override {
    std::string wire = Flatten(frame);
    MutexLock lock(pipe_->mutex);
    // Block like a full socket, so that tests block in the same places as over TCP.
    while (!pipe_->broken && pipe_->bytes[side_] > pipe_->most_bytes) {
      pipe_->changed.Wait(pipe_->mutex);
    }
    if (pipe_->broken) return Unavailable("the connection is closed");
    pipe_->bytes[side_] += wire.size();
    pipe_->frames[side_].push_back(std::move(wire));
    pipe_->changed.NotifyAll();
    return OkStatus();
  }

  Status Read(IncomingFrame& frame) override {
    const int other = 1 - side_;
    {
      MutexLock lock(pipe_->mutex);
      while (!pipe_->broken && pipe_->frames[other].empty()) pipe_->changed.Wait(pipe_->mutex);
      // Deliver frames that were written before the pipe broke.
      if (pipe_->frames[other].empty()) return Unavailable("the connection is closed");
      current_ = std::move(pipe_->frames[other].front());
      pipe_->frames[other].pop_front();
      pipe_->bytes[other] -= current_.size();
      pipe_->changed.NotifyAll();
    }
    frame.pieces.assign(1, std::as_bytes(std::span(current_)));
    return frame.Parse();
  }

  void Cancel() override {
    MutexLock lock(pipe_->mutex);
    pipe_->broken = true;
    pipe_->changed.NotifyAll();
  }

 private:
  const std::shared_ptr<Pipe> pipe_;
  const int side_;
  std::string current_;
};

}  // namespace

PipeConnector::~PipeConnector() {
  std::list<Stream> streams;
  {
    MutexLock lock(mutex_);
    streams.swap(streams_);
  }
  // Join the threads without the lock, because a handler may still be using the connector.
  for (Stream& stream : streams) {
    stream.end->Cancel();
    stream.thread.Join();
  }
}

void PipeConnector::Listen(const std::string& address, const std::string& service,
                           const Identity& identity, StreamHandler& handler) {
  MutexLock lock(mutex_);
  listeners_[{address, service}] = {identity, &handler};
}

void PipeConnector::SetCapacity(size_t bytes) {
  MutexLock lock(mutex_);
  capacity_ = bytes;
}

void PipeConnector::Close(const std::string& address) {
  std::list<Stream> closed;
  {
    MutexLock lock(mutex_);
    std::erase_if(listeners_, [&](const auto& entry) { return entry.first.first == address; });
    for (auto it = streams_.begin(); it != streams_.end();) {
      auto next = std::next(it);
      if (it->address == address) closed.splice(closed.end(), streams_, it);
      it = next;
    }
  }
  // Join the threads without the lock, because a handler may still be using the connector.
  for (Stream& stream : closed) {
    stream.end->Cancel();
    stream.thread.Join();
  }
}

void PipeConnector::Serve(Listener listener, const std::string& service, Transport& end) {
  StatusOr<Admission> admission = Admit(end, listener.identity, [&](const std::string& name) {
    return name == service ? listener.handler : nullptr;
  });
  if (admission.ok()) listener.handler->Serve(admission->caller.identity, "pipe", end);
  end.Cancel();
}

StatusOr<OpenStream> PipeConnector::Connect(const std::string& address, const std::string& service,
                                            const Identity& self, Duration timeout) {
  std::unique_ptr<Transport> transport;
  {
    MutexLock lock(mutex_);
    const auto pipe = std::make_shared<Pipe>(capacity_);
    transport = std::make_unique<PipeEnd>(pipe, 0);
    auto found = listeners_.find({address, service});
    if (found == listeners_.end()) return Unavailable(address, ": no listener");
    Stream& stream = streams_.emplace_back();
    stream.address = address;
    stream.end = std::make_unique<PipeEnd>(pipe, 1);
    stream.thread = Thread("pipe", [this, listener = found->second, service,
                                    end = stream.end.get()] { Serve(listener, service, *end); });
  }
  HandshakeTimer timer(*transport, timeout);
  StatusOr<Identity> peer = Introduce(*transport, service, self);
  if (!peer.ok()) return Annotate(peer.status(), address);
  return OpenStream{std::move(transport), *std::move(peer)};
}

}  // namespace tfjob::rpc
