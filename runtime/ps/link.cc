#include "runtime/ps/link.h"

#include <nlohmann/json.hpp>

#include "runtime/base/json.h"
#include "runtime/base/thread_pool.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

// A frame goes as soon as it is worth one, or when nothing else will come.
constexpr size_t kWorthAFrame = rpc::kFrameTargetBytes / 4;
constexpr Duration kReleaseTimeout{10s};

std::vector<PeerState> ParseMembers(const std::string& body) {
  std::vector<PeerState> members;
  StatusOr<Json> document = ParseJson(body, "server state");
  if (!document.ok()) return members;
  StatusOr<std::vector<JsonField>> list = JsonField(*document)["members"].Elements();
  if (!list.ok()) return members;
  for (const JsonField& peer : *list) {
    members.push_back({.task = peer["task"].StringOr("").value_or(""),
                       .address = peer["address"].StringOr("").value_or(""),
                       .state = peer["state"].StringOr("").value_or("unknown"),
                       .silence = Duration(peer["silence_us"].IntOr(0).value_or(0))});
  }
  return members;
}

std::span<const std::byte> PartOf(const VariableState& state, const Shard& shard, size_t slot) {
  const Tensor& tensor = slot == 0 ? state.value : state.slots[slot - 1];
  return tensor.bytes().subspan(static_cast<size_t>(shard.offset), static_cast<size_t>(shard.size));
}

}  // namespace

Link::Link(LinkContext& context, int server)
    : context_(context),
      server_(server),
      address_(context.options.servers[static_cast<size_t>(server)]),
      name_(StrCat("ps ", server, " (", address_, ")")) {
  for (size_t i = 0; i < context.shards.size(); ++i) {
    if (context.shards[i].server == server) shards_.push_back(static_cast<int>(i));
  }
}

Link::~Link() {
  Disconnect();
}

// ---- the connection

Status Link::Connect(Duration timeout) {
  Disconnect();
  StatusOr<rpc::OpenStream> stream =
      context_.connector->Connect(address_, "parameters", context_.options.identity, timeout);
  if (!stream.ok()) {
    MutexLock lock(context_.mutex);
    why_ = stream.status();
    return why_;
  }
  const rpc::Identity& peer = stream->peer;
  if (peer.task_type != "ps" || peer.task_index != server_) {
    return FailedPrecondition(address_, ": expected ps ", server_, ", found ", rpc::TaskName(peer));
  }
  transport_ = std::move(stream->transport);
  connection_ = std::make_unique<rpc::Connection>(*transport_, *this);
  {
    MutexLock lock(context_.mutex);
    up_ = true;
    why_ = OkStatus();
    live_ = connection_.get();
  }
  reader_ = std::thread([this] {
    SetThreadName("ps-read");
    const Status why = connection_->Run();
    bool expected = why.code() == StatusCode::kCancelled;
    std::string when;
    {
      MutexLock lock(context_.mutex);
      up_ = false;
      live_ = nullptr;
      why_ = why;
      expected = expected || context_.finished;
      when = Awaited();
      context_.changed.NotifyAll();
    }
    if (!expected) {
      Say(Event::Kind::kLost, StrCat(name_, " is gone ", when, ": ", Message(why)));
    }
  });
  ticket_ = context_.watch->Add(
      {.connection = connection_.get(),
       .peer = name_,
       .on_change = [this](rpc::Health health, Duration silence) {
         const bool suspected = health == rpc::Health::kSuspected;
         Say(suspected ? Event::Kind::kSuspected : Event::Kind::kRecovered,
             suspected ? StrCat(name_, " is silent for ", FormatDuration(silence), ", given up at ",
                                FormatDuration(rpc::LivenessRules().lease))
                       : StrCat(name_, " speaks again"));
       }});
  Say(Event::Kind::kConnected, StrCat("connected to ", name_));
  return OkStatus();
}

void Link::Disconnect() {
  if (connection_ == nullptr) return;
  context_.watch->Remove(ticket_);
  connection_->Cancel(Cancelled("disconnected"));
  reader_.join();
  connection_.reset();
  transport_.reset();
  AwaitReleases();
  MutexLock lock(context_.mutex);
  started_ = false;
  fill_ = {};
  copy_ = nullptr;
}

// The last references to our memory go with the library's own threads, at once. Before they have
// gone the memory may not be given back: when that takes long, somebody should know.
void Link::AwaitReleases() {
  auto report = std::chrono::steady_clock::now() + kReleaseTimeout;
  MutexLock lock(flight_mutex_);
  while (in_flight_ > 0) {
    if (released_.WaitUntil(flight_mutex_, report)) continue;
    Say(Event::Kind::kWaiting,
        StrCat(name_, ": the closed connection still holds ", in_flight_, " gradients"));
    report = std::chrono::steady_clock::now() + kReleaseTimeout;
  }
}

std::string Link::Awaited() const {
  const Step& step = context_.step;
  if (step.active && started_ && !answered_) {
    return step.pull ? "while the variables were awaited"
                     : StrCat("while its answer to step ", step.step, " was awaited");
  }
  if (pending_.number != 0 && !pending_.done) {
    return StrCat("while a request was awaited, at step ", step.step);
  }
  return StrCat("at step ", step.step, ", nothing was awaited of it");
}

void Link::Say(Event::Kind kind, const std::string& message) const {
  if (!context_.options.on_event) return;
  context_.options.on_event(
      {.kind = kind, .peer = StrCat("ps ", server_), .address = address_, .message = message});
}

PeerState Link::Describe() {
  MutexLock lock(context_.mutex);
  PeerState state{.task = StrCat("/job:ps/task:", server_), .address = address_, .state = "lost"};
  if (live_ != nullptr) {
    state.silence = live_->Silence();
    state.state = rpc::LivenessRules().Judge(state.silence) == rpc::Health::kAlive ? "connected"
                                                                                   : "suspected";
  } else if (why_.ok()) {
    state.state = "unknown";
  }
  return state;
}

// ---- requests

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
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(context_.mutex);
  while (!(pending_.number == number && pending_.done)) {
    if (!up_) return Unavailable(name_, ": ", Message(why_));
    if (!context_.changed.WaitUntil(context_.mutex, deadline)) {
      return DeadlineExceeded(name_, ": no answer within ", FormatDuration(timeout));
    }
  }
  if (!pending_.status.ok()) return Annotate(pending_.status, name_);
  return std::move(pending_.answer);
}

void Link::Settle(const rpc::FrameHeader& header, Status status, std::string body) {
  MutexLock lock(context_.mutex);
  if (pending_.number != header.sequence || pending_.done) return;
  pending_.done = true;
  pending_.status = std::move(status);
  pending_.answer = {header, std::move(body)};
  context_.changed.NotifyAll();
}

StatusOr<RemoteState> Link::Query(Duration timeout) {
  ASSIGN_OR_RETURN(Answer answer, Request({.type = wire::kQuery}, "", timeout));
  RemoteState state{.ready = (answer.header.flags & wire::kReady) != 0,
                    .epoch = answer.header.value,
                    .step = answer.header.step};
  ASSIGN_OR_RETURN(Json body, ParseJson(answer.body, StrCat(name_, ": state")));
  ASSIGN_OR_RETURN(state.fingerprint, JsonField(body)["fingerprint"].StringOr(""));
  return state;
}

void Link::Poll() {
  MutexLock lock(context_.mutex);
  if (live_ != nullptr) live_->Send({.type = wire::kQuery});
}

void Link::OnState(rpc::IncomingFrame& frame) {
  std::string body = frame.ReadString(frame.remaining());
  if (server_ == 0) {
    std::vector<PeerState> members = ParseMembers(body);
    MutexLock lock(context_.mutex);
    context_.members = std::move(members);
  }
  if (frame.header.sequence != 0) Settle(frame.header, OkStatus(), std::move(body));
}

// ---- the chief's: filling and copying

Status Link::Fill(const Snapshot& snapshot, int64_t epoch, Duration timeout) {
  RETURN_IF_ERROR(Request({.type = wire::kDefine, .value = epoch},
                          Serialize(context_.options.definition), timeout)
                      .status());
  uint64_t number = 0;
  {
    MutexLock lock(context_.mutex);
    if (live_ == nullptr) return Unavailable(name_, ": not connected");
    number = next_request_++;
    pending_ = {.number = number};
    fill_ = {.snapshot = &snapshot, .request = number, .epoch = epoch};
    live_->Wake();
  }
  StatusOr<Answer> answer = Await(number, timeout);
  // The snapshot is the caller's.
  if (!answer.ok()) Disconnect();
  return answer.status();
}

bool Link::NextFill(rpc::OutgoingFrame& frame) {
  if (fill_.snapshot == nullptr || fill_.ended) return false;
  if (fill_.next == shards_.size()) {
    fill_.ended = true;
    text_ = fill_.snapshot->ledger;
    frame.header = {.type = wire::kFilled,
                    .sequence = fill_.request,
                    .step = fill_.snapshot->global_step,
                    .value = fill_.epoch};
    frame.segments.push_back({.bytes = std::as_bytes(std::span(text_))});
    return true;
  }
  const int index = shards_[fill_.next++];
  const Shard& shard = context_.shards[static_cast<size_t>(index)];
  const VariableState& state = fill_.snapshot->variables[static_cast<size_t>(shard.variable)];
  frame.header = {.type = wire::kFill, .value = fill_.epoch};
  for (size_t slot = 0; slot <= state.slots.size(); ++slot) {
    Lend();
    frame.segments.push_back({.index = static_cast<uint32_t>(index),
                              .flags = static_cast<uint32_t>(slot),
                              .bytes = PartOf(state, shard, slot),
                              .release = Released,
                              .argument = this});
  }
  return true;
}

Status Link::BeginCopy(Snapshot& snapshot) {
  MutexLock lock(context_.mutex);
  if (live_ == nullptr) return Unavailable(name_, ": not connected");
  copy_ = &snapshot;
  copy_request_ = next_request_++;
  pending_ = {.number = copy_request_};
  live_->Send({.type = wire::kSnapshot, .sequence = copy_request_});
  return OkStatus();
}

Status Link::AwaitCopy(Duration timeout) {
  uint64_t number = 0;
  {
    MutexLock lock(context_.mutex);
    number = copy_request_;
  }
  StatusOr<Answer> answer = Await(number, timeout);
  if (!answer.ok()) {
    Disconnect();
    return answer.status();
  }
  MutexLock lock(context_.mutex);
  Snapshot& snapshot = *copy_;
  copy_ = nullptr;
  if (server_ == 0) snapshot.global_step = answer->header.step;
  snapshot.ledger += answer->body;
  return OkStatus();
}

void Link::OnCopy(rpc::IncomingFrame& frame) {
  Snapshot* snapshot = nullptr;
  {
    MutexLock lock(context_.mutex);
    if (copy_request_ == frame.header.sequence) snapshot = copy_;
  }
  if (snapshot == nullptr) return;
  if (frame.header.type == wire::kSnapshotEnd) {
    return Settle(frame.header, OkStatus(), frame.ReadString(frame.remaining()));
  }
  for (const rpc::SegmentInfo& segment : frame.segments) {
    const bool known = segment.index < context_.shards.size();
    const Shard shard = known ? context_.shards[segment.index] : Shard{.server = -1};
    if (shard.server != server_ || segment.length != static_cast<uint64_t>(shard.size) ||
        segment.flags > snapshot->variables[static_cast<size_t>(shard.variable)].slots.size()) {
      return connection_->Cancel(
          DataLoss(name_, ": a copy of shard ", segment.index, " that is none"));
    }
    VariableState& state = snapshot->variables[static_cast<size_t>(shard.variable)];
    Tensor& tensor = segment.flags == 0 ? state.value : state.slots[segment.flags - 1];
    frame.Read(tensor.bytes().subspan(static_cast<size_t>(shard.offset), segment.length));
  }
}

// ---- the exchange

Link::Part Link::part() const {
  if (!up_) return Part::kDown;
  if (refused_) return Part::kRefused;
  if (!started_) return Part::kIdle;
  return answered_ ? Part::kAnswered : Part::kAwaited;
}

void Link::Start(int64_t epoch) {
  const Step& step = context_.step;
  started_ = first_ = true;
  answered_ = refused_ = false;
  epoch_ = epoch;
  ready_.clear();
  ready_bytes_ = 0;
  to_come_ = shards_.size();
  if (live_ == nullptr) return;
  if (step.pull) {
    live_->Send(
        {.type = wire::kPull, .sequence = step.sequence, .step = step.step, .value = epoch});
    return;
  }
  for (int shard : shards_) {
    const int variable = context_.shards[static_cast<size_t>(shard)].variable;
    if (step.marked[static_cast<size_t>(variable)]) Mark(shard);
  }
  live_->Wake();
}

void Link::Mark(int shard) {
  if (!started_) return;
  ready_.push_back(shard);
  ready_bytes_ += static_cast<size_t>(context_.shards[static_cast<size_t>(shard)].size);
}

void Link::Wake() {
  const bool whole = context_.step.unmarked == 0;
  if (live_ != nullptr && started_ && (whole || ready_bytes_ >= kWorthAFrame)) live_->Wake();
}

bool Link::NextFrame(rpc::OutgoingFrame& frame) {
  MutexLock lock(context_.mutex);
  return NextFill(frame) || NextPush(frame);
}

bool Link::NextPush(rpc::OutgoingFrame& frame) {
  const Step& step = context_.step;
  if (!step.active || step.pull || !started_ || refused_) return false;
  const bool whole = step.unmarked == 0;
  const bool empty = shards_.empty() && first_ && whole;
  if (!empty && (ready_.empty() || (!whole && ready_bytes_ < kWorthAFrame))) return false;
  frame.header = {.type = wire::kPush,
                  .flags = static_cast<uint16_t>(first_ ? wire::kFirst : 0),
                  .sequence = step.sequence,
                  .step = step.step,
                  .value = epoch_};
  first_ = false;
  size_t total = 0;
  while (!ready_.empty() && total < rpc::kFrameTargetBytes) {
    const int index = ready_.front();
    ready_.pop_front();
    const Shard& shard = context_.shards[static_cast<size_t>(index)];
    const auto bytes = static_cast<size_t>(shard.size);
    ready_bytes_ -= bytes;
    std::span<const std::byte> gradient = step.gradients[static_cast<size_t>(shard.variable)];
    if (!gradient.empty()) gradient = gradient.subspan(static_cast<size_t>(shard.offset), bytes);
    total += gradient.size();
    Lend();
    frame.segments.push_back({.index = static_cast<uint32_t>(index),
                              .bytes = gradient,
                              .release = Released,
                              .argument = this});
  }
  return true;
}

void Link::Released(void* link) {
  auto* self = static_cast<Link*>(link);
  MutexLock lock(self->flight_mutex_);
  if (--self->in_flight_ == 0) self->released_.NotifyAll();
}

void Link::Lend() {
  MutexLock lock(flight_mutex_);
  ++in_flight_;
}

bool Link::Lent() {
  MutexLock lock(flight_mutex_);
  return in_flight_ > 0;
}

void Link::Quiesce() {
  MutexLock lock(context_.mutex);
  if (!answered_) started_ = false;
  while (reading_) context_.changed.Wait(context_.mutex);
}

void Link::Abandon() {
  Quiesce();
  if (Lent()) Disconnect();
}

void Link::OnFrame(rpc::IncomingFrame& frame) {
  switch (frame.header.type) {
    case wire::kValues:
      return OnValues(frame);
    case wire::kShard:
    case wire::kSnapshotEnd:
      return OnCopy(frame);
    case wire::kState:
      return OnState(frame);
    case wire::kReply: {
      std::string body = frame.ReadString(frame.remaining());
      Status status(static_cast<StatusCode>(frame.header.value), body);
      return Settle(frame.header, status, "");
    }
    case wire::kRefused: {
      std::string body = frame.ReadString(frame.remaining());
      MutexLock lock(context_.mutex);
      if (!started_ || frame.header.sequence != context_.step.sequence) return;
      refused_ = true;
      why_ = Status(static_cast<StatusCode>(frame.header.value), body);
      context_.changed.NotifyAll();
      return;
    }
    case wire::kFinished: {
      MutexLock lock(context_.mutex);
      context_.finished = true;
      context_.changed.NotifyAll();
      return;
    }
    default:
      return;  // from a later version
  }
}

void Link::OnValues(rpc::IncomingFrame& frame) {
  Step* step = nullptr;
  {
    MutexLock lock(context_.mutex);
    if (!started_ || !context_.step.active || answered_ ||
        frame.header.sequence != context_.step.sequence) {
      return;  // the answer to a step that is over
    }
    reading_ = true;
    step = &context_.step;
  }
  Status status;
  for (const rpc::SegmentInfo& segment : frame.segments) {
    const bool known = segment.index < context_.shards.size();
    const Shard shard = known ? context_.shards[segment.index] : Shard{.server = -1};
    if (shard.server != server_ || segment.length != static_cast<uint64_t>(shard.size)) {
      status = DataLoss(name_, ": values of shard ", segment.index, " that is none");
      break;
    }
    frame.Read(step->values[static_cast<size_t>(shard.variable)].subspan(
        static_cast<size_t>(shard.offset), segment.length));
  }
  MutexLock lock(context_.mutex);
  reading_ = false;
  to_come_ -= std::min(to_come_, frame.segments.size());
  if ((frame.header.flags & wire::kLast) != 0) {
    if (to_come_ > 0 && (frame.header.flags & wire::kAgain) == 0) {
      status = DataLoss(name_, ": ", to_come_, " shards' values did not come");
    }
    answered_ = status.ok();
    answer_ = frame.header;
  }
  if (!status.ok()) connection_->Cancel(status);
  context_.changed.NotifyAll();
}

}  // namespace tfjob::ps
