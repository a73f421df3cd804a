#include "runtime/ps/client/link.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "runtime/base/json.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/wire_status.h"
#include "runtime/state/run_failure.h"

namespace tfjob::ps {
namespace {

constexpr Duration kReleaseTimeout{10s};

std::vector<state::PeerState> ParseMembers(const Json& document) {
  std::vector<state::PeerState> members;
  StatusOr<std::vector<JsonField>> list = JsonField(document)["members"].Elements();
  if (!list.ok()) return members;
  for (const JsonField& peer : *list) {
    const std::string task = peer["task"].StringOr("").value_or("");
    members.push_back({.task = task,
                       .role = state::RoleOfTask(task),
                       .address = peer["address"].StringOr("").value_or(""),
                       .health = state::ParsePeerHealth(peer["state"].StringOr("").value_or("")),
                       .silence = Duration(peer["silence_us"].IntOr(0).value_or(0))});
  }
  return members;
}

// Returns the learning rate in a server's state, or nullopt if there is none, or no valid one.
std::optional<state::LearningRate> ParseRate(const Json& document) {
  const JsonField field = JsonField(document)["learning_rate"];
  const state::LearningRate rate{.rate = field["rate"].Double().value_or(-1),
                                 .step = field["step"].IntOr(0).value_or(0)};
  return rate.IsValid() ? std::optional(rate) : std::nullopt;
}

}  // namespace

Link::Link(LinkContext& context, int server)
    : context_(context),
      server_(server),
      address_(context.options.servers[static_cast<size_t>(server)]),
      name_(StrCat("ps ", server, " (", address_, ")")) {
  for (size_t i = 0; i < context.shards.size(); ++i) {
    if (context.shards[i].server != server) continue;
    shards_.push_back(static_cast<int>(i));
    if (IsTable(context.options.definition, context.shards[i].variable)) continue;
    bytes_ += static_cast<uint64_t>(context.shards[i].size);
  }
}

Link::~Link() {
  Disconnect();
}

// ---- the connection

StatusOr<rpc::OpenStream> Link::Open(Duration timeout) const {
  ASSIGN_OR_RETURN(
      rpc::OpenStream stream,
      context_.connector->Connect(address_, "parameters", context_.options.identity, timeout));
  const rpc::Identity& peer = stream.peer;
  // Check the index: shards are placed by server index, so a server with another index has other
  // shards.
  if (peer.task_type != "ps" || peer.task_index != server_) {
    return FailedPrecondition(address_, ": expected ps ", server_, ", found ", rpc::TaskName(peer));
  }
  return stream;
}

Status Link::Connect(Duration timeout) {
  Disconnect();
  StatusOr<rpc::OpenStream> stream = Open(timeout);
  if (!stream.ok()) {
    MutexLock lock(context_.mutex);
    why_ = stream.status();
    return why_;
  }
  transport_ = std::move(stream->transport);
  connection_ = std::make_unique<rpc::Connection>(*transport_, *this);
  {
    MutexLock lock(context_.mutex);
    up_ = true;
    ending_ = false;
    registered_ = false;
    announced_ = 0;
    sent_rate_.reset();
    why_ = OkStatus();
    live_ = connection_.get();
  }
  RETURN_IF_ERROR(StartReader());
  ticket_ = context_.watch->Add(
      {.connection = connection_.get(),
       .peer = name_,
       .on_change = [this](rpc::Health health, Duration silence) { OnHealth(health, silence); }});
  Say(state::PeerEvent::Kind::kConnected, StrCat("connected to ", name_));
  return OkStatus();
}

Status Link::StartReader() {
  try {
    reader_ = Thread("ps-read", [this] { OnEnd(connection_->Run()); });
    return OkStatus();
  } catch (const std::system_error& error) {
    MutexLock lock(context_.mutex);
    up_ = false;
    live_ = nullptr;
    why_ = ResourceExhausted(name_, ": no thread can be started: ", error.what());
  }
  connection_.reset();
  transport_.reset();
  MutexLock lock(context_.mutex);
  return why_;
}

void Link::OnEnd(const Status& why) {
  // The loss is expected if this side closed the connection.
  bool expected = absl::IsCancelled(why);
  std::string when;
  {
    MutexLock lock(context_.mutex);
    up_ = false;
    live_ = nullptr;
    why_ = why;
    expected = expected || context_.finished || !context_.failure.ok();
    when = Awaiting();
    EndPiece(piece_read_.number, Unavailable(name_, ": ", Message(why)));
    context_.changed.NotifyAll();
  }
  if (!expected) {
    Say(state::PeerEvent::Kind::kLost, StrCat(name_, " was lost ", when, ": ", Message(why)));
  }
}

void Link::OnHealth(rpc::Health health, Duration silence) const {
  const bool suspected = health == rpc::Health::kSuspected;
  Say(suspected ? state::PeerEvent::Kind::kSuspected : state::PeerEvent::Kind::kRecovered,
      suspected ? StrCat(name_, " has been silent for ", FormatDuration(silence),
                         ", will be given up at ", FormatDuration(context_.options.liveness.lease))
                : StrCat(name_, " responds again"));
}

void Link::Disconnect() {
  if (connection_ == nullptr) return;
  // Remove the ticket first, because the watch may use the connection while it has the ticket. Join
  // the reader thread before returning, because it writes into the caller's memory.
  context_.watch->Remove(ticket_);
  connection_->Cancel(Cancelled("disconnected"));
  reader_.Join();
  connection_.reset();
  transport_.reset();
  AwaitReleases();
  MutexLock lock(context_.mutex);
  started_ = false;
  fill_ = {};
  copy_ = nullptr;
}

// Waits until the transport has released the caller's memory. Only then may the caller reuse it.
// The wait is normally short, so a long one is reported.
void Link::AwaitReleases() {
  auto report = SteadyNow() + kReleaseTimeout;
  MutexLock lock(flight_mutex_);
  while (in_flight_ > 0) {
    if (released_.WaitUntil(flight_mutex_, report)) continue;
    Say(state::PeerEvent::Kind::kWaiting,
        StrCat(name_, ": the closed connection still holds ", in_flight_, " gradients"));
    report = SteadyNow() + kReleaseTimeout;
  }
}

std::string Link::Awaiting() const {
  const Step& step = context_.step;
  if (step.active && started_ && !answered_) {
    return step.pull ? "while the variables were awaited"
                     : StrCat("while its answer to step ", step.step, " was awaited");
  }
  if (torn_) return StrCat("within a frame of its values, at step ", step.step);
  if (pending_.number != 0 && !pending_.done) {
    return StrCat("while a request was awaited, at step ", step.step);
  }
  return StrCat("at step ", step.step, ", nothing was awaited from it");
}

void Link::Say(state::PeerEvent::Kind kind, const std::string& message) const {
  if (!context_.options.on_event) return;
  context_.options.on_event(
      {.kind = kind, .peer = StrCat("ps ", server_), .address = address_, .message = message});
}

state::PeerState Link::Describe() {
  MutexLock lock(context_.mutex);
  state::PeerState state = state::PeerOf("ps", server_);
  state.address = address_;
  state.health = state::PeerHealth::kLost;
  if (live_ != nullptr) {
    state.silence = live_->Silence();
    state.health = context_.options.liveness.Judge(state.silence) == rpc::Health::kAlive
                       ? state::PeerHealth::kConnected
                       : state::PeerHealth::kSuspected;
  } else if (why_.ok()) {
    state.health = state::PeerHealth::kUnknown;
  }
  return state;
}

// ---- requests

bool Link::TakesInPlace(const rpc::FrameHeader& header) const {
  return header.type == wire::kValues || header.type == wire::kShard ||
         header.type == wire::kCopied;
}

void Link::OnFrame(rpc::IncomingFrame& frame) {
  switch (frame.header.type) {
    case wire::kValues:
      return OnValues(frame);
    case wire::kShard:
    case wire::kSnapshotEnd:
      return OnCopy(frame);
    case wire::kCopied:
      return OnCopied(frame);
    case wire::kState:
      return OnState(frame);
    case wire::kRegistered:
      return Settle(frame.header, OkStatus(), "");
    case wire::kReply: {
      const std::string body = frame.ReadString(frame.remaining());
      const Status status = rpc::StatusFromWire(frame.header.value, body);
      if (!status.ok()) {
        MutexLock lock(context_.mutex);
        EndPiece(frame.header.sequence, Annotate(status, name_));
      }
      return Settle(frame.header, status, "");
    }
    case wire::kRefused:
      return OnRefused(frame);
    case wire::kFinished: {
      MutexLock lock(context_.mutex);
      context_.finished = true;
      context_.changed.NotifyAll();
      return;
    }
    case wire::kFailed: {
      const std::string words =
          frame.ReadString(std::min(frame.remaining(), state::kMaxFailureBytes));
      MutexLock lock(context_.mutex);
      context_.failure = state::RunFailure(words);
      context_.changed.NotifyAll();
      return;
    }
    default:
      return;  // a type that a later version of the program sends
  }
}

StatusOr<Link::Answer> Link::Request(rpc::FrameHeader header, std::string body, Duration timeout) {
  {
    MutexLock lock(context_.mutex);
    if (live_ == nullptr) return Unavailable(name_, ": not connected");
    header.sequence = next_request_++;
    pending_ = {.number = header.sequence};
    live_->Send(header, std::move(body));
  }
  return Await(header.sequence, timeout);
}

StatusOr<Link::Answer> Link::Await(uint64_t number, Duration timeout) {
  const auto deadline = SteadyNow() + timeout;
  MutexLock lock(context_.mutex);
  // Wait in a loop, because all links and the step share `changed`, so a wake-up may have another
  // reason.
  while (!(pending_.number == number && pending_.done)) {
    if (!up_) return Unavailable(name_, ": ", Message(why_));
    if (context_.interrupted) return Cancelled(name_, ": the wait for its answer was ended");
    if (!context_.changed.WaitUntil(context_.mutex, deadline)) {
      return DeadlineExceeded(name_, ": no answer within ", FormatDuration(timeout));
    }
  }
  if (!pending_.status.ok()) return Annotate(pending_.status, name_);
  return std::move(pending_.answer);
}

void Link::Settle(const rpc::FrameHeader& header, Status status, std::string body) {
  MutexLock lock(context_.mutex);
  // Ignore the answer to a request that is no longer awaited.
  if (pending_.number != header.sequence || pending_.done) return;
  // From now on, the caller may free the snapshot. Clear copy_ on this thread, the only one that
  // writes into the snapshot, so that it ignores further frames of the copy.
  if (copy_request_ == header.sequence) copy_ = nullptr;
  pending_.done = true;
  pending_.status = std::move(status);
  pending_.answer = {header, std::move(body)};
  context_.changed.NotifyAll();
}

Status Link::CheckStep(int64_t step) const {
  if (step >= 0 && step <= kGreatestStep) return OkStatus();
  return DataLoss(name_, ": its step: expected 0 to ", kGreatestStep, ", got ", step);
}

// Returns the state that the header of a kState frame describes.
StatusOr<RemoteState> Link::StateOf(const rpc::FrameHeader& header) const {
  RETURN_IF_ERROR(CheckStep(header.step));
  // Check the epoch, because the chief derives the next one from it.
  if (header.value < 0 || header.value > kGreatestEpoch) {
    return DataLoss(name_, ": its epoch: expected 0 to ", kGreatestEpoch, ", got ", header.value);
  }
  return RemoteState{
      .ready = (header.flags & wire::kReady) != 0, .epoch = header.value, .step = header.step};
}

StatusOr<RemoteState> Link::Query(Duration timeout) {
  ASSIGN_OR_RETURN(Answer answer, Request({.type = wire::kQuery}, "", timeout));
  ASSIGN_OR_RETURN(RemoteState state, StateOf(answer.header));
  ASSIGN_OR_RETURN(Json body, ParseJson(answer.body, StrCat(name_, ": state")));
  ASSIGN_OR_RETURN(state.fingerprint, JsonField(body)["fingerprint"].StringOr(""));
  ASSIGN_OR_RETURN(state.servers, JsonField(body)["servers"].IntOr(0));
  ASSIGN_OR_RETURN(state.incarnation, JsonField(body)["incarnation"].IntOr(0));
  state.learning_rate = ParseRate(body);
  return state;
}

StatusOr<RemoteState> Link::QueryStep(Duration timeout) {
  ASSIGN_OR_RETURN(const Answer answer,
                   Request({.type = wire::kQuery, .flags = wire::kBrief}, "", timeout));
  return StateOf(answer.header);
}

void Link::OnAttendance(const Json& state) {
  const std::string absent = JsonField(state)["absent"].StringOr("").value_or("");
  {
    MutexLock lock(context_.mutex);
    context_.missing = JsonField(state)["missing"].StringOr("").value_or("");
    if (context_.absent == absent) return;
    context_.absent = absent;
  }
  Say(state::PeerEvent::Kind::kAbsent,
      absent.empty() ? ""
                     : StrCat("training goes on without ", absent,
                              ", which did not start within strategy.start_timeout_secs"));
}

// The chief knows which rate it has set, before ps 0 does.
void Link::OnRate(const Json& state) {
  if (context_.options.chief) return;
  MutexLock lock(context_.mutex);
  context_.learning_rate = ParseRate(state);
}

void Link::Poll() {
  MutexLock lock(context_.mutex);
  if (live_ != nullptr) live_->Send({.type = wire::kQuery});
}

void Link::RenewHold() {
  MutexLock lock(context_.mutex);
  if (live_ != nullptr && context_.holding) live_->Send({.type = wire::kRenew});
}

void Link::OnState(rpc::IncomingFrame& frame) {
  std::string body = frame.ReadString(frame.remaining());
  // The answer to QueryStep does not list the members.
  if (body.empty()) return Settle(frame.header, OkStatus(), "");
  // The list of members from ps 0 is enough, because every task connects to every server.
  StatusOr<Json> document = server_ == 0 ? ParseJson(body, "server state") : Json();
  if (server_ == 0 && document.ok()) {
    std::vector<state::PeerState> members = ParseMembers(*document);
    OnAttendance(*document);
    if ((frame.header.flags & wire::kReady) != 0) OnRate(*document);
    MutexLock lock(context_.mutex);
    context_.members.Take(std::move(members), SteadyNow(), context_.options.liveness.lease);
  }
  NoteEndings((frame.header.flags & wire::kEnding) != 0, body);
  // Sequence 0 marks the answer to Poll, which no caller waits for.
  if (frame.header.sequence != 0) Settle(frame.header, OkStatus(), std::move(body));
}

}  // namespace tfjob::ps
