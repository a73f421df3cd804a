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
  RETURN_IF_ERROR(AdmitAnywhere(peer));
  const std::string task = TaskName(peer);
  MutexLock lock(mutex_);
  const auto of_task = streams_of_.find(task);
  if (of_task != streams_of_.end() && of_task->second >= kMostStreamsOfATask) {
    return ResourceExhausted("refused: ", TaskName(identity_), " already has ", of_task->second,
                             " streams of ", task);
  }
  if (open_.size() >= kMostStreams) {
    return ResourceExhausted("refused: ", TaskName(identity_), " already has ", open_.size(),
                             " streams");
  }
  if (greeting_ >= kMostGreeting) {
    return ResourceExhausted("refused: ", greeting_, " streams of ", TaskName(identity_),
                             " are in their handshake");
  }
  return OkStatus();
}

// Returns OK if any handler admits the task, and the first refusal otherwise. Without this check, a
// task that no handler admits would occupy a thread during its handshake.
Status StreamServer::AdmitAnywhere(const Identity& peer) const {
  Status refusal;
  for (const auto& [service, handler] : handlers_) {
    const Status status = handler->Admit(peer);
    if (status.ok()) return OkStatus();
    if (refusal.ok()) refusal = status;
  }
  return refusal;
}

void StreamServer::Accept(DataConnection connection) {
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
    return;
  }
  ++greeting_;
  ++streams_of_[TaskName(stream->peer)];
}

void StreamServer::Serve(const Stream& stream) {
  const StatusOr<Admission> admission = Greet(stream);
  {
    MutexLock lock(mutex_);
    --greeting_;
  }
  if (admission.ok()) {
    admission->handler->Serve(stream.peer, stream.address, *stream.transport);
  } else if (absl::IsDataLoss(admission.status()) || absl::IsDeadlineExceeded(admission.status())) {
    LogBroken(stream, admission.status());
  }
}

StatusOr<Admission> StreamServer::Greet(const Stream& stream) {
  stream.transport->BeginHandshake(kHandshakeTimeout);
  StatusOr<Admission> admission = rpc::Admit(
      *stream.transport, identity_, [&](const std::string& service) { return Find(service); },
      &stream.peer);
  stream.transport->EndHandshake();
  return admission;
}

// Logs a stream whose first frame is not a handshake. Refusals for other reasons are only sent to
// the caller.
void StreamServer::LogBroken(const Stream& stream, const Status& why) {
  const std::string source = stream.address.substr(0, stream.address.rfind(':'));
  std::optional<uint64_t> left_out;
  {
    MutexLock lock(mutex_);
    left_out = broken_.Note(source, RealClock().Monotonic());
  }
  if (!left_out) return;
  kRpcLog.Warning("closed a stream", {{"from", source},
                                      {"peer", TaskName(stream.peer)},
                                      {"why", Message(why)},
                                      {"not_logged", *left_out}});
}

void StreamServer::End(Streams::iterator stream) {
  std::unique_ptr<SocketTransport> transport;  // closed without the lock
  Streams ended;                               // joined without the lock
  {
    MutexLock lock(mutex_);
    transport = std::move(stream->transport);
    const auto of_task = streams_of_.find(TaskName(stream->peer));
    if (--of_task->second == 0) streams_of_.erase(of_task);
    ended.swap(ended_);
    ended_.splice(ended_.end(), open_, stream);
    changed_.NotifyAll();
  }
  for (Stream& other : ended) other.thread.Join();
}

void StreamServer::Stop(Duration timeout) {
  const auto deadline = SteadyNow() + timeout;
  Streams ended;
  {
    MutexLock lock(mutex_);
    while (!open_.empty() && changed_.WaitUntil(mutex_, deadline)) {
    }
    for (const Stream& stream : open_) stream.transport->Cancel();
    while (!open_.empty()) changed_.Wait(mutex_);
    ended.swap(ended_);
  }
  for (Stream& stream : ended) stream.thread.Join();
}

StreamHandler* StreamServer::Find(const std::string& service) const {
  const auto found =
      std::ranges::find(handlers_, service, [](const auto& handler) { return handler.first; });
  return found == handlers_.end() ? nullptr : found->second;
}

}  // namespace tfjob::rpc
