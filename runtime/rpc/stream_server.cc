#include "runtime/rpc/stream_server.h"

#include <algorithm>
#include <system_error>

#include "runtime/base/log.h"
#include "runtime/rpc/handshake.h"

namespace tfjob::rpc {
namespace {

constexpr Logger kRpcLog("rpc");

}  // namespace

StreamServer::StreamServer(Identity identity, Handlers handlers)
    : identity_(std::move(identity)), handlers_(std::move(handlers)) {}

StreamServer::~StreamServer() {
  Stop(Duration(0));
}

Status StreamServer::Admit(const Identity& peer, const std::string&) {
  const std::string task = TaskName(peer);
  MutexLock lock(mutex_);
  const auto of_task = std::ranges::count_if(
      open_, [&](const Stream& stream) { return TaskName(stream.peer) == task; });
  if (of_task >= kMostStreamsOfATask) {
    return ResourceExhausted("refused: ", TaskName(identity_), " already has ", of_task,
                             " streams of ", task);
  }
  if (open_.size() >= kMostStreams) {
    return ResourceExhausted("refused: ", TaskName(identity_), " already has ", open_.size(),
                             " streams");
  }
  return OkStatus();
}

void StreamServer::Accept(DataConnection connection) {
  Reap();
  MutexLock lock(mutex_);
  const auto stream = open_.emplace(open_.end());
  stream->peer = std::move(connection.peer);
  stream->address = std::move(connection.address);
  stream->transport = std::make_unique<SocketTransport>(std::move(connection.socket));
  try {
    stream->thread = Thread("rpc-stream", [this, stream] {
      Serve(*stream);
      End(stream);
    });
  } catch (const std::system_error& error) {
    kRpcLog.Warning("closed a stream: no thread can be started",
                    {{"peer", TaskName(stream->peer)}, {"why", error.what()}});
    open_.erase(stream);
  }
}

void StreamServer::Serve(const Stream& stream) {
  SocketTransport& transport = *stream.transport;
  // The timer must be destroyed before Serve, or it would cancel a healthy stream.
  StatusOr<Admission> admission = [&] {
    HandshakeTimer timer(transport, kHandshakeTimeout);
    return rpc::Admit(
        transport, identity_, [&](const std::string& service) { return Find(service); },
        &stream.peer);
  }();
  if (!admission.ok()) return;  // the caller was told
  admission->handler->Serve(stream.peer, stream.address, transport);
}

void StreamServer::End(Streams::iterator stream) {
  std::unique_ptr<SocketTransport> transport;  // closed without the lock
  MutexLock lock(mutex_);
  transport = std::move(stream->transport);
  ended_.splice(ended_.end(), open_, stream);
  changed_.NotifyAll();
}

void StreamServer::Reap() {
  Streams ended;
  {
    MutexLock lock(mutex_);
    ended.swap(ended_);
  }
  for (Stream& stream : ended) stream.thread.Join();
}

void StreamServer::Stop(Duration timeout) {
  const auto deadline = SteadyNow() + timeout;
  {
    MutexLock lock(mutex_);
    while (!open_.empty() && changed_.WaitUntil(mutex_, deadline)) {
    }
    for (const Stream& stream : open_) stream.transport->Cancel();
    while (!open_.empty()) changed_.Wait(mutex_);
  }
  Reap();
}

StreamHandler* StreamServer::Find(const std::string& service) const {
  const auto found =
      std::ranges::find(handlers_, service, [](const auto& handler) { return handler.first; });
  return found == handlers_.end() ? nullptr : found->second;
}

}  // namespace tfjob::rpc
