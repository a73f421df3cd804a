#include "runtime/collectives/endpoint/endpoint_state.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/log.h"

namespace tfjob::collectives {
namespace {

constexpr Logger kEndpointLog("collectives");
// The interval at which a wait that continues is reported again.
constexpr Duration kRepeatReport{2s};
// A phase that is shorter than this is not reported.
constexpr Duration kBriefPhase{200ms};
// How long it may take to read the messages that arrived while this process was paused: twice the
// heartbeat interval (rpc::ConnectionOptions).
constexpr Duration kSettles{1s};
// How long a task whose operation has failed waits for the leader's reason.
constexpr Duration kReasonPatience{1s};

Duration MonotonicNow() {
  return RealClock().Monotonic();
}

std::string TaskNameOf(const GroupTask& task) {
  return StrCat(task.type, " ", task.index);
}

Member MemberOf(const GroupTask& task, int64_t incarnation = 0) {
  return {.task = TaskNameOf(task), .address = task.address, .incarnation = incarnation};
}

std::vector<std::string> NamesOf(const std::vector<GroupTask>& tasks) {
  std::vector<std::string> names;
  for (const GroupTask& task : tasks) names.push_back(TaskNameOf(task));
  return names;
}

std::vector<Member> MembersOf(const std::vector<GroupTask>& tasks) {
  std::vector<Member> members;
  for (const GroupTask& task : tasks) members.push_back(MemberOf(task));
  return members;
}

int FindTask(const std::vector<GroupTask>& tasks, const rpc::Identity& identity) {
  const auto found = std::ranges::find_if(tasks, [&](const GroupTask& task) {
    return task.type == identity.task_type && task.index == identity.task_index;
  });
  return found == tasks.end() ? -1 : static_cast<int>(found - tasks.begin());
}

LeaderRules Rules(const EndpointOptions& options) {
  LeaderRules rules{.shrinks = options.shrinks};
  if (options.least_tasks == 0) return rules;
  rules.least_tasks = options.least_tasks;
  rules.listed_tasks = options.listed_tasks;
  rules.start_patience = options.start_patience;
  rules.call_patience = CallPatience(options.liveness.lease);
  const auto age = RealClock().Now().time_since_epoch();
  rules.first_generation = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  return rules;
}

int RequireTask(const EndpointOptions& options) {
  const int task = FindTask(options.tasks, options.identity);
  ENFORCE(task >= 0, "the tasks that train include this one");
  return task;
}

}  // namespace

StatusOr<std::string> TextOf(rpc::IncomingFrame& frame) {
  if (frame.remaining() > kMostMessageBytes) {
    return DataLoss("a message of ", frame.remaining(), " bytes");
  }
  return frame.ReadString(frame.remaining());
}

Endpoint::State::State(EndpointOptions endpoint_options)
    : options(std::move(endpoint_options)),
      task(RequireTask(options)),
      member(MemberOf(options.tasks[static_cast<size_t>(task)], options.identity.incarnation),
             MemberOf(options.tasks[0]), options.shrinks),
      pauses(options.liveness.lease / 2, kSettles),
      intake(NamesOf(options.tasks), TaskNameOf(options.tasks[static_cast<size_t>(task)])),
      timer(options.exchange_timeout),
      addresses(MembersOf(options.tasks)),
      watch([this] { Tick(); }, options.liveness) {
  MutexLock lock(mutex);
  if (task == 0) StartLeading();
}

void Endpoint::State::StartLeading() {
  machine = std::make_unique<Leader>(DescribeAll(), Rules(options), task);
  leader = task;
  leader_incarnation = options.identity.incarnation;
  const Status connected =
      machine->Connect(MonotonicNow(), task, options.identity.incarnation, kOwnSession);
  ENFORCE(connected.ok(), "the leader admits itself");
  member.Connected(DescriptionOf(task));
}

void Endpoint::State::StopLeading(const std::string& why) {
  machine = nullptr;
  for (const auto& [session, of_member] : sessions) of_member.connection->Cancel(Cancelled(why));
  member.Disconnected(Unavailable(why));
}

bool Endpoint::State::MayWrite() {
  MutexLock lock(mutex);
  return HasRightToWrite();
}

// The watcher may not have noticed yet that a member is silent or that this process was paused.
bool Endpoint::State::HasRightToWrite() {
  const Duration now = MonotonicNow();
  pauses.Note(now);
  if (machine == nullptr || !member.LedLastShared()) return false;
  const auto is_heard = [this, now](SessionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto session = sessions.find(id);
    if (session == sessions.end()) return false;
    const Duration silence = session->second.connection->Silence();
    return silence < options.liveness.lease && pauses.IsFresh(now - silence);
  };
  return machine->HasMajority(member.past(), is_heard);
}

Member Endpoint::State::DescriptionOf(int number) const {
  return {.task = NameOf(number), .address = AddressOf(number)};
}

std::vector<Member> Endpoint::State::DescribeAll() const {
  std::vector<Member> all;
  for (size_t i = 0; i < options.tasks.size(); ++i) {
    all.push_back(DescriptionOf(static_cast<int>(i)));
  }
  return all;
}

std::string Endpoint::State::NameOf(int number) const {
  return TaskNameOf(options.tasks[static_cast<size_t>(number)]);
}

std::string Endpoint::State::AddressOf(int number) const {
  MutexLock lock(addresses_mutex);
  return addresses.Of(NameOf(number));
}

void Endpoint::State::NoteAddresses(const std::vector<Member>& members) {
  if (options.least_tasks == 0) return;
  MutexLock lock(addresses_mutex);
  for (const std::string& warning : addresses.Note(members)) kEndpointLog.Warning(warning);
}

bool Endpoint::State::IsPresent(int number) const {
  if (options.least_tasks == 0) return true;
  const auto is_session = [number](const auto& session) { return session.second.task == number; };
  if (std::ranges::any_of(sessions, is_session)) return true;
  if (!member.InGeneration()) return number == leader;
  return std::ranges::any_of(member.formation().members,
                             [&](const Member& other) { return other.task == NameOf(number); });
}

std::string Endpoint::State::Place(int number) const {
  return Describe(DescriptionOf(number));
}

Endpoint::State::~State() = default;

int Endpoint::State::TaskOf(const rpc::Identity& identity) const {
  return FindTask(options.tasks, identity);
}

// ---- events

void Endpoint::State::SetSink(state::PeerEventSink new_sink) {
  MutexLock lock(sink_mutex);
  sink = std::move(new_sink);
}

void Endpoint::State::Say(state::PeerEvent::Kind kind, const std::string& peer,
                          const std::string& address, const std::string& message) {
  MutexLock lock(sink_mutex);
  if (sink) sink({.kind = kind, .peer = peer, .address = address, .message = message});
}

std::function<void(rpc::Health, Duration)> Endpoint::State::OnHealth(
    int number, std::function<void(bool)> suspected) {
  return [this, number, suspected = std::move(suspected)](rpc::Health health, Duration silence) {
    const std::string name = NameOf(number), address = AddressOf(number), place = Place(number);
    const bool silent = health == rpc::Health::kSuspected;
    {
      MutexLock lock(mutex);
      suspected(silent);
    }
    if (silent) {
      Say(state::PeerEvent::Kind::kSuspected, name, address,
          StrCat(place, " has been silent for ", FormatDuration(silence), ", will be given up at ",
                 FormatDuration(options.liveness.lease)));
    } else {
      Say(state::PeerEvent::Kind::kRecovered, name, address, StrCat(place, " responds again"));
    }
  };
}

// ---- the exchange between the state machines

void Endpoint::State::Pump() {
  while (PassOn() || PassOnOfLeader()) {
  }
  changed.NotifyAll();
}

void Endpoint::State::LeaveGeneration(const GroupMember::Left& ended) {
  intake.End();
  sockets.clear();
  left = ended.generation;
  why_left = ended.why;
  reported.reset();
  timer.Reset();
  state_is_shared = false;
  if (communicator != nullptr) communicator->Abort(ended.why);
  communicator = nullptr;
  channel = {};
}

bool Endpoint::State::PassOn() {
  if (const auto ended = member.TakeLeft()) LeaveGeneration(*ended);
  if (member.InGeneration() && channel.generation != member.formation().generation) {
    channel = {leader_incarnation, member.formation().generation};
    sockets.clear();
    sockets.resize(member.formation().members.size());
    NoteAddresses(member.formation().members);
    intake.Begin(channel, member.formation().members, member.rank());
  }
  for (auto& [rank, socket] : intake.Take()) {
    sockets[static_cast<size_t>(rank)] = std::move(socket);
    member.SocketConnected(channel.generation, rank);
  }
  const std::vector<ToLeader> messages = member.TakeMessages();
  for (const ToLeader& message : messages) {
    if (machine != nullptr) {
      machine->OnMessage(MonotonicNow(), kOwnSession, message);
    } else if (to_leader != nullptr) {
      to_leader->Send({.type = kToLeader}, Encode(message));
    }
  }
  return !messages.empty();
}

bool Endpoint::State::PassOnOfLeader() {
  if (machine == nullptr) return false;
  const LeaderOutput output = machine->Take();
  for (const SessionId session : output.closed) {
    const auto found = sessions.find(session);
    if (found == sessions.end()) continue;
    found->second.connection->Cancel(Cancelled("a newer connection has replaced this one"));
  }
  if (machine->ShouldStepAside()) {
    pause = Rules(options).NextPause(pause);
    rests_until = MonotonicNow() + pause;
    StopLeading(StrCat(Place(task), " could not connect to the group, and tries again after ",
                       FormatDuration(pause)));
    return true;
  }
  if (machine->ShouldHandBack()) {
    rests_until = MonotonicNow() + kHandBack;
    StopLeading(StrCat(Place(0), " leads the group again"));
    return true;
  }
  bool own = false;
  for (const auto& [session, message] : output.messages) {
    if (session == kOwnSession) {
      member.OnMessage(message);
      own = true;
    } else if (const auto found = sessions.find(session); found != sessions.end()) {
      found->second.connection->Send({.type = kToMember}, Encode(message));
    }
  }
  return own;
}

// ---- the watcher

void Endpoint::State::Tick() {
  {
    MutexLock lock(mutex);
    const Duration now = MonotonicNow();
    pauses.Note(now);
    if (machine != nullptr) machine->Tick(now);
    if (!asked_at && asked_to_end && asked_to_end()) asked_at = now;
    ReportPhase(now);
    if (communicator != nullptr) {
      const Waiting wait = communicator->CurrentWait();
      ReportWait(wait, now);
      EndLateExchange(wait, now);
      EndBeforeStop(wait, now);
    }
    Pump();
  }
  SayStuck();
}

void Endpoint::State::Announce(state::WorkPhase phase, Duration limit) {
  const Duration now = MonotonicNow();
  MutexLock lock(mutex);
  if (phase != busy.phase) busy = {.phase = phase, .since = now, .until = now};
  busy.until = now + limit;
}

// A leader forgets a phase that is no longer reported, so a phase is reported repeatedly.
void Endpoint::State::ReportPhase(Duration now) {
  const bool is_brief = now - busy.since < kBriefPhase;
  const state::WorkPhase phase = is_brief ? state::WorkPhase::kNone : busy.phase;
  const bool is_due = phase != state::WorkPhase::kNone && now - busy_reported_at >= kRepeatReport;
  if (phase == busy_reported && !is_due) return;
  busy_reported = phase;
  busy_reported_at = now;
  PhaseReport report{.phase = phase};
  if (phase != state::WorkPhase::kNone) {
    report.microseconds = (now - busy.since).count();
    report.left = std::max(busy.until - now, Duration(0)).count();
  }
  member.Report(report);
}

void Endpoint::State::ReportWait(const Waiting& wait, Duration now) {
  // Report a wait early enough that the culprit is known when the exchange is aborted.
  const Duration limit =
      options.exchange_timeout > Duration(0)
          ? std::min(options.liveness.suspect_after, options.exchange_timeout / 2)
          : options.liveness.suspect_after;
  const bool is_long = wait.on >= 0 && now - wait.since >= limit;
  if (!is_long && !reported) return;
  if (is_long && reported && now - *reported < kRepeatReport) return;
  reported = is_long ? std::optional(now) : std::nullopt;
  member.Report({.generation = channel.generation,
                 .operation = wait.operation,
                 .name = std::string(wait.name),
                 .on = is_long ? wait.on : -1,
                 .microseconds = is_long ? (now - wait.since).count() : 0});
}

void Endpoint::State::EndLateExchange(const Waiting& wait, Duration now) {
  if (!state_is_shared || !timer.IsLate(now, wait, member.stuck().busy)) return;
  const Member& direct = member.formation().members[static_cast<size_t>(wait.on)];
  const std::string culprit = member.stuck().text.empty()
                                  ? StrCat("this task waits for ", Describe(direct))
                                  : member.stuck().text;
  communicator->Abort(DeadlineExceeded("operation ", wait.operation, " (", wait.name,
                                       ") has taken longer than ",
                                       FormatDuration(options.exchange_timeout), ": ", culprit));
}

// The reason also reaches the other tasks, which continue without this task. It must therefore not
// be an error that would make them exit.
void Endpoint::State::EndBeforeStop(const Waiting& wait, Duration now) {
  if (!asked_at || wait.on < 0 || now - std::max(*asked_at, wait.since) < stop_patience) return;
  const Member& other = member.formation().members[static_cast<size_t>(wait.on)];
  communicator->Abort(Aborted(Describe(MemberOf(options.tasks[static_cast<size_t>(task)])),
                              " was asked to end, and has waited for ", Describe(other), " for ",
                              FormatDuration(stop_patience)));
}

void Endpoint::State::SayStuck() {
  StuckNotice before, now;
  {
    MutexLock lock(mutex);
    if (member.stuck() == stuck) return;
    before = std::exchange(stuck, member.stuck());
    now = stuck;
  }
  if (now.text.empty()) {
    Say(state::PeerEvent::Kind::kReturned, before.peer, before.address,
        StrCat(before.peer, " (", before.address, ") no longer keeps the others waiting"));
  } else {
    Say(state::PeerEvent::Kind::kStuck, now.peer, now.address, now.text);
  }
}

Status Endpoint::State::Failed(int64_t generation, const std::vector<Member>& members,
                               const Status& why) {
  // Convert Cancelled, because it would mean that the job has ended. A rank that has left is lost
  // only to this generation.
  const StatusCode code = absl::IsCancelled(why) ? StatusCode::kUnavailable : why.code();
  const Status named(code, NameRanks(std::string(Message(why)), members));
  const auto deadline = SteadyNow() + kReasonPatience;
  MutexLock lock(mutex);
  // A closed socket may belong to a member that has left because another member was lost, so the
  // leader's reason takes precedence.
  member.ReportFailure(generation, named, /*departs=*/absl::IsAborted(named));
  Pump();
  while (left < generation && changed.WaitUntil(mutex, deadline)) {
  }
  if (left >= generation) return absl::IsUnavailable(named) ? why_left : named;
  member.Failed(generation, named);
  Pump();
  return named;
}

}  // namespace tfjob::collectives
