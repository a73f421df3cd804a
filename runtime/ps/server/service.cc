#include "runtime/ps/server/service.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "runtime/base/json.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/server/coordinator_link.h"
#include "runtime/ps/server/synchronizer.h"
#include "runtime/ps/wire.h"
#include "runtime/state/run_failure.h"

namespace tfjob::ps {
namespace {

constexpr Duration kPollInterval{5ms};  // between two checks of the connections

// The sessions' buffers up to this size never count against the memory limit, however low that is.
constexpr int64_t kLeastLeft = int64_t{1} << 20;

// Returns how many bytes of buffers the sessions may keep for reuse, if the server may use
// `max_bytes`.
size_t MostFreeBytes(int64_t max_bytes) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return static_cast<size_t>(std::clamp(max_bytes / 16, int64_t{0}, kMost));
}

std::string Described(const rpc::Identity& peer, const std::string& address) {
  return StrCat(rpc::TaskName(peer), " (", address, ")");
}

}  // namespace

Service::Service(ServerOptions options, std::unique_ptr<rpc::Connector> own_connector)
    : options_(std::move(options)),
      own_connector_(std::move(own_connector)),
      synchronizer_(std::make_unique<Synchronizer>(*this, options_.identity, options_.pool)),
      buffers_(rpc::BufferPool::Create(MostFreeBytes(options_.max_bytes))),
      // Reserve an eighth for connections and for the sessions' buffers. Stores, which may outlive
      // the service, share this object.
      memory_(std::make_shared<StateMemory>(
          options_.max_bytes - options_.max_bytes / 8,
          [staged = synchronizer_->buffers(), buffers = buffers_,
           left = std::max(options_.max_bytes / 8, kLeastLeft)] {
            const auto more = static_cast<int64_t>(buffers->bytes()) - left;
            return static_cast<int64_t>(staged->bytes()) + std::max(more, int64_t{0});
          })),
      watch_([this] { Tick(); }, options_.liveness) {}

Service::~Service() {
  synchronizer_->Stop();
}

// ---- sessions

Status Service::Admit(const rpc::Identity& peer) {
  MutexLock lock(mutex_);
  if (finished_ || stopped_) return FailedPrecondition("the job's parameter servers are stopping");
  if (options_.may_have && !options_.may_have(peer.task_type, peer.task_index)) {
    return FailedPrecondition("refused: the job has no task ", rpc::TaskName(peer), " as far as ",
                              rpc::TaskName(options_.identity), " knows");
  }
  if (incarnations_.IsSuperseded({peer.task_type, peer.task_index}, peer.incarnation)) {
    return FailedPrecondition("refused: a later start of ", rpc::TaskName(peer),
                              " is known: stop the older process");
  }
  return OkStatus();
}

void Service::Serve(const rpc::Identity& peer, const std::string& address,
                    rpc::Transport& transport) {
  PeerSession session(*this, peer, address, transport, options_);
  Register(session);
  const auto ticket = watch_.Add(
      {.connection = &session.connection(),
       .peer = Described(peer, session.address()),
       .on_change = [&](rpc::Health health, Duration silence) {
         if (health == rpc::Health::kSuspected) {
           Tell(state::PeerEvent::Kind::kSuspected, session,
                StrCat("has been silent for ", FormatDuration(silence), ", will be given up at ",
                       FormatDuration(options_.liveness.lease)));
         } else {
           Tell(state::PeerEvent::Kind::kRecovered, session, "responds again");
         }
       }});
  // `session` is a local variable, so the watch and the map of sessions must drop it before this
  // function returns.
  const Status why = session.connection().Run();
  watch_.Remove(ticket);
  Unregister(session, why);
}

void Service::Register(PeerSession& session) {
  {
    MutexLock lock(mutex_);
    const protocol::Worker task = session.worker();
    lost_.erase(task);
    endings_.erase(task);
    stuck_.erase(task);
    if (index() == 0 && RoleOf(session.peer()) != PeerRole::kNone) {
      session.set_incarnation(incarnations_.Connect(task, session.peer().incarnation));
    }
    // A server does not request an incarnation for itself: only ps 0 needs the incarnations of
    // servers.
    if (index() == 0 && task.type == "ps" && session.incarnation() == 0) {
      session.set_incarnation(
          incarnations_.Register(task, session.peer().incarnation, 0, 0).value_or(0));
    }
    PeerSession*& current = sessions_[task];
    // If the task already has a session, it reconnected or restarted before this server noticed
    // that the old connection was dead.
    if (current != nullptr) current->connection().Cancel(Aborted("the task reconnected"));
    current = &session;
    if (!failure_.ok()) session.SayFailed(failure_);
  }
  Tell(state::PeerEvent::Kind::kConnected, session, "connected");
}

void Service::Unregister(PeerSession& session, const Status& why) {
  bool was_current = false;
  int64_t step = -1;
  const protocol::Worker task = session.worker();
  {
    MutexLock lock(mutex_);
    auto found = sessions_.find(task);
    if (copier_ == &session) Unfreeze();
    // If a new session has replaced this one, the task has reconnected and is not lost.
    was_current = found != sessions_.end() && found->second == &session;
    if (was_current) {
      sessions_.erase(found);
      stuck_.erase(task);
      changed_.NotifyAll();
      state::PeerState& lost = lost_[task];
      lost = state::PeerOf(task.type, task.index);
      lost.address = session.address();
      lost.health = state::PeerHealth::kLost;
    }
    was_current = was_current && !finished_ && !stopped_ && failure_.ok();
    if (store_ != nullptr) step = store_->step();
  }
  // Do not hold mutex_ here, because the synchronizer's lock must be taken before mutex_.
  const bool awaited = was_current && synchronizer_->Awaits(task);
  synchronizer_->Disconnected(task, session.incarnation());
  if (!was_current) return;
  std::string when = "before this server had state";
  if (step >= 0) {
    when = awaited ? StrCat("while step ", step, " waited for its gradient")
                   : StrCat("at step ", step, ", which did not wait for it");
  }
  Tell(state::PeerEvent::Kind::kLost, session, StrCat("was lost ", when, ": ", Message(why)));
}

void Service::Tell(state::PeerEvent::Kind kind, const PeerSession& session,
                   const std::string& message) const {
  if (!options_.on_event) return;
  options_.on_event(
      {.kind = kind,
       .peer = rpc::TaskName(session.peer()),
       .address = session.address(),
       .message = StrCat(Described(session.peer(), session.address()), " ", message)});
}

// ---- roles

PeerRole Service::RoleOf(const rpc::Identity& peer) const {
  if (peer.task_type == "ps") return PeerRole::kServes;
  if (peer.task_type == "evaluator") return PeerRole::kNone;
  const bool chief =
      peer.task_type == options_.chief_type && peer.task_index == options_.chief_index;
  return chief || options_.chief_type.empty() ? PeerRole::kChief : PeerRole::kTrains;
}

bool Service::IsChiefLocked(const PeerSession& session) const {
  if (RoleOf(session.peer()) != PeerRole::kChief) return false;
  return !options_.chief_type.empty() || !filler_ || *filler_ == session.worker();
}

std::string Service::ChiefName() const {
  return StrCat(options_.chief_type, " ", options_.chief_index);
}

// ---- state

Status Service::NotReady() const {
  return FailedPrecondition(rpc::TaskName(options_.identity),
                            " is uninitialised: it waits for the chief to fill it");
}

StatusOr<std::shared_ptr<Store>> Service::ReadyStore() {
  MutexLock lock(mutex_);
  if (store_ == nullptr) return NotReady();
  return store_;
}

StatusOr<std::shared_ptr<Store>> Service::StoreOf(int64_t epoch) {
  MutexLock lock(mutex_);
  if (store_ == nullptr) return NotReady();
  if (store_->epoch() != epoch) {
    return FailedPrecondition(rpc::TaskName(options_.identity), " is in epoch ", store_->epoch(),
                              ", not ", epoch);
  }
  return store_;
}

StatusOr<std::shared_ptr<Store>> Service::Define(const std::string& text, int64_t epoch) {
  const int64_t greatest = RealClock().Now().time_since_epoch().count() + kMostEpochAhead;
  if (epoch > greatest) {
    return InvalidArgument("epoch: expected up to ", greatest, " (ten years from now), got ",
                           epoch);
  }
  ASSIGN_OR_RETURN(Assignment assignment, ParseAssignment(text));
  const int servers = static_cast<int>(assignment.servers.size());
  if (index() >= servers) {
    return InvalidArgument("the chief's TF_CONFIG has ", servers, " ps tasks, but this is ",
                           rpc::TaskName(options_.identity));
  }
  const int64_t bytes = Store::BytesFor(assignment.definition, index(), servers);
  if (bytes > options_.max_bytes) {
    return InvalidArgument("the variables of ", rpc::TaskName(options_.identity), " take ", bytes,
                           " bytes with their slots, but it may use only ", options_.max_bytes,
                           ": use more parameter servers, or raise their memory limit");
  }
  RETURN_IF_ERROR(BeginEpoch(epoch, assignment.servers[0]));
  auto store = std::make_shared<Store>(std::move(assignment.definition), index(), servers, epoch);
  store->CountIn(memory_, bytes);
  MutexLock lock(mutex_);
  if (epoch != epoch_) return EpochIsOver(epoch);
  filling_ = store;
  return store;
}

// Takes the old state out of service at once, not when the new state is complete, because no task
// may mix values of two states. Unless a session keeps copies of the old state, frees it before the
// new state is allocated, because a server might not have memory for both.
Status Service::BeginEpoch(int64_t epoch, const std::string& coordinator) {
  std::shared_ptr<Store> old, unfinished;
  MutexLock change(change_mutex_);
  {
    MutexLock lock(mutex_);
    // Ignore a late request from an earlier chief, because it must not replace the state of the
    // current chief.
    if (epoch <= epoch_) return EpochIsOver(epoch);
    epoch_ = epoch;
    coordinator_ = coordinator;
    old = std::move(store_);
    unfinished = std::move(filling_);
  }
  // Do not hold mutex_ here, because the synchronizer's lock must be taken before mutex_.
  synchronizer_->Void();
  return OkStatus();
}

Status Service::EpochIsOver(int64_t epoch) const {
  return Aborted("epoch ", epoch, " is over: ", epoch_, " was defined");
}

void Service::Abandon(const std::shared_ptr<Store>& store) {
  MutexLock lock(mutex_);
  if (filling_ == store) filling_ = nullptr;
}

Status Service::Activate(std::shared_ptr<Store> store, const protocol::Worker& filler) {
  MutexLock change(change_mutex_);
  {
    MutexLock lock(mutex_);
    if (filling_ != store) return Aborted("epoch ", store->epoch(), " is over");
  }
  synchronous_ = store->definition().mode == Mode::kSynchronous;
  // Pass the state to the synchronizer before setting store_. As soon as store_ is set, sessions
  // stage contributions, which a synchronizer without the state would refuse.
  if (synchronous_) synchronizer_->Fill(store);
  const std::map<protocol::Worker, int64_t> incarnations = store->Incarnations();
  MutexLock lock(mutex_);
  // Check again, because the session may have abandoned the store during the fill.
  if (filling_ != store) return Aborted("epoch ", store->epoch(), " is over");
  Learn(incarnations);
  filling_ = nullptr;
  filler_ = filler;
  store_ = std::move(store);
  return OkStatus();
}

std::vector<state::PeerState> Service::MembersLocked() {
  std::vector<state::PeerState> members;
  for (const auto& [task, session] : sessions_) {
    state::PeerState& member = members.emplace_back(state::PeerOf(task.type, task.index));
    member.address = session->address();
    member.silence = session->connection().Silence();
    const bool alive = options_.liveness.Judge(member.silence) == rpc::Health::kAlive;
    member.health = !alive                  ? state::PeerHealth::kSuspected
                    : stuck_.contains(task) ? state::PeerHealth::kStuck
                                            : state::PeerHealth::kConnected;
  }
  for (const auto& [task, peer] : lost_) members.push_back(peer);
  return members;
}

std::pair<rpc::FrameHeader, std::string> Service::DescribeState(const PeerSession& session) {
  // Do not hold mutex_ here, because the synchronizer's lock must be taken before mutex_.
  const Attendance attendance = synchronizer_->GetAttendance();
  MutexLock lock(mutex_);
  return DescribeStateLocked(session, attendance);
}

rpc::FrameHeader Service::DescribeStep() {
  MutexLock lock(mutex_);
  return DescribeStepLocked();
}

rpc::FrameHeader Service::DescribeStepLocked() const {
  rpc::FrameHeader header{.type = wire::kState, .value = epoch_};
  if (ending_) header.flags |= wire::kEnding;
  if (store_ == nullptr) return header;
  header.flags |= wire::kReady;
  header.step = store_->step();
  return header;
}

std::pair<rpc::FrameHeader, std::string> Service::DescribeStateLocked(
    const PeerSession& to, const Attendance& attendance) {
  Json body = {{"members", Json::array()},
               {"incarnation", incarnations_.LeastFor(to.worker(), to.peer().incarnation)}};
  if (!attendance.missing.empty()) body["missing"] = protocol::NamesOf(attendance.missing);
  if (!attendance.absent.empty()) body["absent"] = protocol::NamesOf(attendance.absent);
  for (const state::PeerState& peer : MembersLocked()) {
    body["members"].push_back({{"task", peer.task},
                               {"address", peer.address},
                               {"state", std::string(state::Name(peer.health))},
                               {"silence_us", peer.silence.count()}});
  }
  for (const protocol::Worker& task : endings_)
    body["ending"].push_back(state::PeerOf(task.type, task.index).task);
  if (store_ != nullptr) {
    body["fingerprint"] = StrCat(store_->fingerprint());
    body["servers"] = store_->servers();
    if (const std::optional<state::LearningRate> rate = store_->learning_rate())
      body["learning_rate"] = {{"rate", rate->rate}, {"step", rate->step}};
  }
  return {DescribeStepLocked(), PrintJson(body)};
}

ServerState Service::State() {
  MutexLock lock(mutex_);
  ServerState state{.ready = store_ != nullptr, .epoch = epoch_, .members = MembersLocked()};
  state.staged_bytes = static_cast<int64_t>(synchronizer_->staged_bytes());
  state.buffer_bytes = static_cast<int64_t>(buffers_->bytes());
  if (store_ != nullptr) {
    state.global_step = store_->step();
    state.shards = static_cast<int64_t>(store_->shards().size());
    state.bytes = store_->total_bytes();
  }
  return state;
}

bool Service::ServesLocked() const {
  return store_ != nullptr && std::ranges::any_of(sessions_, [](const auto& session) {
           return session.first.type != "ps";
         });
}

state::PeerEvent Service::DescribeWaitLocked() const {
  state::PeerEvent event{
      .kind = state::PeerEvent::Kind::kWaiting, .peer = "chief", .address = "", .message = ""};
  if (store_ == nullptr) {
    event.message = std::string(Message(NotReady()));
    return event;
  }
  std::vector<std::string> peers, gone;
  for (const auto& [task, peer] : lost_) {
    if (task.type == "ps") continue;
    peers.push_back(protocol::ToString(task));
    gone.push_back(StrCat(protocol::ToString(task), " (", peer.address, ")"));
  }
  if (!peers.empty()) event.peer = absl::StrJoin(peers, ", ");
  const int64_t step = store_->step();
  event.message = StrCat(rpc::TaskName(options_.identity), " is at step ", step,
                         " and waits for a training task; gone: ", absl::StrJoin(gone, ", "));
  return event;
}

// Called by the watch. Drives the synchronizer and reports long waits.
void Service::Tick() {
  // Do not hold mutex_ here, because the synchronizer's lock must be taken before mutex_.
  synchronizer_->Tick();
  state::PeerEvent wait;
  {
    MutexLock lock(mutex_);
    const Duration now = RealClock().Monotonic();
    if (ServesLocked() || finished_ || stopped_) waiting_since_ = now;
    if (now - waiting_since_ < options_.report_every) return;
    waiting_since_ = now;
    wait = DescribeWaitLocked();
  }
  if (options_.on_event) options_.on_event(wait);
}

// ---- the end

void Service::Finish() {
  MutexLock lock(mutex_);
  finished_ = true;
  // Each session sends kFinished after all other frames, so that its peer gets the last
  // answer first.
  for (const auto& [task, session] : sessions_) session->SayFinished();
  changed_.NotifyAll();
}

// Keep running until the chief knows of the failure. A chief that is restarting learns of the
// failure as soon as it connects, and can then record it.
void Service::Fail(const PeerSession& session, const std::string& words) {
  MutexLock lock(mutex_);
  if (finished_ || chief_has_failed_) return;
  const Status failure = state::RunFailure(words);
  chief_has_failed_ = IsChiefLocked(session);
  changed_.NotifyAll();
  if (!failure_.ok() && (!chief_has_failed_ || Message(failure) == Message(failure_))) return;
  failure_ = failure;
  for (const auto& [task, session] : sessions_) session->SayFailed(failure_);
}

Status Service::WaitUntilFinished() {
  MutexLock lock(mutex_);
  while (!finished_ && !stopped_ && !chief_has_failed_) changed_.Wait(mutex_);
  AwaitLastWords();
  if (finished_) return OkStatus();
  return chief_has_failed_ ? failure_ : Cancelled("the parameter server was stopped");
}

void Service::AwaitLastWords() {
  // Limit the wait, because a peer that has stopped reading would otherwise keep this process
  // running.
  const auto deadline = std::min(SteadyNow() + kLastWords, last_words_until_);
  auto said = [](const auto& session) { return session.second->connection().Drained(); };
  while (!std::ranges::all_of(sessions_, said) && SteadyNow() < deadline) {
    changed_.WaitFor(mutex_, kPollInterval);
  }
}

void Service::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
  // Do not cancel the streams after the end of the job, because frames still being delivered could
  // be lost. The peers or the shutdown of rpc::Server will close them.
  if (finished_) return;
  AwaitLastWords();
  for (const auto& [task, session] : sessions_) {
    session->connection().Cancel(Cancelled("the parameter server was stopped"));
  }
}

}  // namespace tfjob::ps
