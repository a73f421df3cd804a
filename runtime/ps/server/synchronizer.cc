#include "runtime/ps/server/synchronizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/server/coordinator_link.h"
#include "runtime/ps/server/service.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

// The limit on the memory that is kept from one step to the next.
constexpr size_t kMostFreeBytes = size_t{16} << 30;

// The limit on a task's contributions on this server, as a multiple of the limit for one process.
constexpr size_t kProcesses = 4;

// Merges are worthwhile if the variables take at least this many bytes.
constexpr int64_t kWorthMerging = int64_t{4} << 20;

int64_t BytesOf(const Definition& definition) {
  int64_t bytes = 0;
  for (const state::Variable& variable : definition.state.variables) {
    bytes += variable.shape.num_elements() * static_cast<int64_t>(SizeOf(variable.dtype));
  }
  return bytes;
}

Duration Now() {
  return RealClock().Monotonic();
}

}  // namespace

// ---- life cycle

Synchronizer::Synchronizer(Service& service, const rpc::Identity& identity, ThreadPool* pool)
    : service_(service),
      index_(identity.task_index),
      stream_(pool),
      participant_(identity.incarnation) {}

Synchronizer::~Synchronizer() {
  Stop();
}

void Synchronizer::Stop() {
  std::unique_ptr<CoordinatorLink> link;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    link = std::move(link_);
    wake_.NotifyAll();
  }
  // Join the threads without the lock, because they may be waiting for it.
  link.reset();
  if (applier_.joinable()) applier_.Join();
}

// Closes the link to ps 0 if the chief has since named another address of ps 0.
void Synchronizer::DropOldLink() {
  std::unique_ptr<CoordinatorLink> old;
  {
    MutexLock lock(mutex_);
    if (link_ != nullptr && link_->address() != service_.coordinator()) old = std::move(link_);
  }
  // Join the thread without the lock, because the thread may be waiting for it.
  old.reset();
}

void Synchronizer::Fill(const std::shared_ptr<Store>& store) {
  DropOldLink();
  MutexLock lock(mutex_);
  if (stopping_) return;
  // Create the thread and the link only now: asynchronous jobs do not need them, and the first
  // state determines the mode.
  if (!applier_.joinable()) applier_ = Thread("ps-apply", [this] { ApplyLoop(); });
  if (index_ > 0 && link_ == nullptr) link_ = service_.LinkToCoordinator(*this);
  const int64_t step = store->step();
  if (index_ == 0) {
    if (coordinator_ == nullptr || coordinator_->servers() != store->servers()) {
      coordinator_ =
          std::make_unique<protocol::Coordinator>(store->servers(), service_.lease_rule());
    }
    std::vector<protocol::Worker> tasks;
    for (const state::TaskId& task : store->definition().tasks)
      tasks.push_back({task.type, task.index});
    gather_until_ = Now() + store->definition().start_timeout;
    coordinator_->Gather(std::move(tasks), gather_until_);
    // Fill the coordinator first: it must already have the new epoch when this server's participant
    // says hello (below).
    Carry(coordinator_->Fill(store->epoch(), step, store->definition().replicas_to_aggregate,
                             BytesOf(store->definition()) >= kWorthMerging,
                             NormsOf(store->definition())));
  }
  store_ = store;
  if (coordinator_ != nullptr) SetRateOfCommits();
  // Keep as much memory as a step stages, so that the next step can reuse the buffers.
  size_t values = 0;
  for (int shard : store->shards()) values += store->bytes_of(shard);
  const auto aggregate = static_cast<size_t>(store->definition().replicas_to_aggregate);
  const bool few = values == 0 || aggregate <= kMostFreeBytes / values;
  buffers_->KeepAtMost(few ? values * aggregate : kMostFreeBytes);
  // If the tasks are unknown, assume that there are backup workers.
  const size_t tasks = store->definition().tasks.size();
  backups_ = tasks == 0 || aggregate < tasks;
  const bool measured = NormsOf(store->definition()) > 0;
  Carry(participant_.Fill(Now(), store->epoch(), step, backups_, measured));
}

void Synchronizer::SetLearningRate(const std::shared_ptr<Store>& store) {
  MutexLock lock(mutex_);
  // The state may have been replaced in the meantime.
  if (coordinator_ != nullptr && store_ == store) SetRateOfCommits();
}

void Synchronizer::SetRateOfCommits() {
  const std::optional<state::LearningRate> rate = store_->learning_rate();
  coordinator_->SetLearningRate(rate ? std::optional(rate->rate) : std::nullopt);
}

void Synchronizer::Void() {
  MutexLock lock(mutex_);
  store_ = nullptr;
  if (coordinator_ != nullptr) Carry(coordinator_->Void());
  Carry(participant_.Void());
  // Free the buffers, because the next state may need their memory.
  buffers_->KeepAtMost(0);
}

// ---- events from sessions

Status Synchronizer::CheckStagedBy(const protocol::Name& name, size_t most) const {
  // Earlier processes of a task that crashed during this step leave contributions here until ps 0
  // makes this server forget them.
  const size_t most_of_all = kProcesses * most;
  size_t own = 0, all = 0;
  auto staged = staged_.lower_bound(
      {.worker = name.worker, .incarnation = std::numeric_limits<int64_t>::min()});
  for (; staged != staged_.end() && staged->first.worker == name.worker; ++staged) {
    ++all;
    if (staged->first.incarnation == name.incarnation) ++own;
  }
  if (own < most && all < most_of_all) return OkStatus();
  return ResourceExhausted(protocol::ToString(name.worker), " already has ", all,
                           " contributions here that no step has used, ", own,
                           " of them from this process: expected fewer than ", most_of_all, " and ",
                           most);
}

StatusOr<std::shared_ptr<Staging>> Synchronizer::Stage(const protocol::Name& name, int64_t step,
                                                       const std::shared_ptr<Store>& store) {
  // Wait without the lock, and decide afterwards whether the contribution is needed, because its
  // step may be complete by then.
  std::unique_ptr<Intake::Slot> slot;
  if (BytesOf(store->definition()) >= kWorthMerging) slot = intake_->Enter();
  MutexLock lock(mutex_);
  // If all other tasks have left, one task sends all contributions that a step needs. One more
  // contribution may belong to the next step.
  const auto most = static_cast<size_t>(store->definition().replicas_to_aggregate) + 1;
  RETURN_IF_ERROR(CheckStagedBy(name, most));
  // A push also readmits a worker that had left because its connection broke.
  Joined(name);
  if (!participant_.Wants(store->epoch(), step, name)) return std::shared_ptr<Staging>();
  return std::make_shared<Staging>(store, buffers_, name, std::move(slot));
}

void Synchronizer::Joined(const protocol::Name& name) {
  if (coordinator_ == nullptr) return;
  std::erase(absent_, name.worker);
  Carry(coordinator_->Join(name.worker, name.incarnation));
}

int64_t Synchronizer::DrawnBy(const protocol::Worker& worker) {
  if (store_ == nullptr || coordinator_ == nullptr) return 0;
  return std::max(store_->DrawnBy(worker), coordinator_->DrawnBy(worker, backups_));
}

Attendance Synchronizer::GetAttendance() {
  MutexLock lock(mutex_);
  if (coordinator_ == nullptr || store_ == nullptr) return {};
  return {coordinator_->Missing(), absent_};
}

void Synchronizer::Staged(const protocol::Name& name, int64_t epoch, int64_t step, int64_t drawn,
                          std::shared_ptr<Staging> staging) {
  if (staging != nullptr) staging->EndIntake();
  MutexLock lock(mutex_);
  // Check again, because the step may have been decided, or the state replaced, while the bytes
  // arrived.
  if (staging != nullptr && participant_.Wants(epoch, step, name)) {
    staged_[name] = std::move(staging);
  } else if (staging == nullptr && participant_.Wants(epoch, step, name)) {
    // The bytes were skipped because the participant had another state, now void, when the first of
    // them arrived. The worker must resend them.
    Carry({.refused = {name}});
    return;
  }
  Carry(participant_.Staged(epoch, step, name, drawn));
}

void Synchronizer::Pull(const protocol::Name& name, int64_t epoch) {
  MutexLock lock(mutex_);
  if (participant_.epoch() != epoch) {
    Carry({.refused = {name}});
    return;
  }
  Joined(name);
  Carry({.answers = {{.name = name, .step = participant_.step()}}});
}

void Synchronizer::Leave(const protocol::Worker& worker, int64_t incarnation, bool for_good) {
  MutexLock lock(mutex_);
  if (coordinator_ != nullptr) Carry(coordinator_->Leave(worker, incarnation, for_good));
}

void Synchronizer::Disconnected(const protocol::Worker& worker, int64_t incarnation) {
  MutexLock lock(mutex_);
  if (coordinator_ == nullptr) return;
  // A task that reconnects is first registered with the service, and joins only after this lock is
  // released. This function therefore cannot undo its join.
  bool connected = false;
  service_.WithSession(worker, incarnation, [&](PeerSession&) { connected = true; });
  if (!connected) Carry(coordinator_->Leave(worker, incarnation));
}

bool Synchronizer::Awaits(const protocol::Worker& worker) {
  MutexLock lock(mutex_);
  if (coordinator_ == nullptr || store_ == nullptr) return false;
  const std::vector<protocol::Worker> awaited = coordinator_->Awaited();
  return std::ranges::find(awaited, worker) != awaited.end();
}

void Synchronizer::Hold(const protocol::Worker& worker, int64_t incarnation, uint64_t sequence) {
  MutexLock lock(mutex_);
  if (coordinator_ == nullptr) return;
  holds_[worker] = {incarnation, sequence};
  Carry(coordinator_->Hold(Now(), worker));
}

void Synchronizer::Renew(const protocol::Worker& worker) {
  MutexLock lock(mutex_);
  if (coordinator_ != nullptr) coordinator_->Renew(Now(), worker);
}

bool Synchronizer::Release(const protocol::Worker& worker) {
  MutexLock lock(mutex_);
  if (coordinator_ == nullptr) return false;
  const bool held = coordinator_->Holds(worker);
  Carry(coordinator_->Release(worker));
  return held;
}

bool Synchronizer::Holds(const protocol::Worker& worker) {
  MutexLock lock(mutex_);
  return coordinator_ != nullptr && coordinator_->Holds(worker);
}

// ---- messages

void Synchronizer::FromParticipant(int server, int64_t incarnation, const std::string& message) {
  // Drop an unreadable message. The protocol repeats it like a lost message.
  std::optional<protocol::ToCoordinator> read = protocol::DecodeToCoordinator(message);
  if (!read) return;
  // The sender has filled in its start time by its own clock. Replace this time with the
  // incarnation that ps 0 has issued to the sender.
  if (auto* hello = std::get_if<protocol::Hello>(&*read)) hello->incarnation = incarnation;
  MutexLock lock(mutex_);
  if (coordinator_ == nullptr || server >= coordinator_->servers()) return;
  Carry(coordinator_->OnMessage(server, *read));
}

void Synchronizer::FromCoordinator(const std::string& message) {
  std::optional<protocol::ToParticipant> read = protocol::DecodeToParticipant(message);
  MutexLock lock(mutex_);
  if (read) Carry(participant_.OnMessage(*read));
}

void Synchronizer::Connected() {
  MutexLock lock(mutex_);
  Carry(participant_.Connected(Now()));
}

void Synchronizer::Tick() {
  MutexLock lock(mutex_);
  if (store_ == nullptr) return;
  Carry(participant_.Tick(Now()));
  if (coordinator_ == nullptr) return;
  Carry(coordinator_->Tick(Now()));
  ReportWait();
}

void Synchronizer::ReportWait() {
  if (coordinator_->step() != waited_step_) {
    waited_step_ = coordinator_->step();
    waited_since_ = Now();
  }
  if (Now() - waited_since_ < kReportInterval) return;
  waited_since_ = Now();
  if (const std::vector<protocol::Worker> missing = coordinator_->Missing(); !missing.empty()) {
    return service_.TellGathering(missing, std::max(gather_until_ - Now(), Duration(0)));
  }
  service_.TellWait(waited_step_, coordinator_->Awaited());
}

// ---- carrying out actions

void Synchronizer::SendToCoordinator(const protocol::ToCoordinator& message) {
  if (coordinator_ != nullptr) {
    Carry(coordinator_->OnMessage(0, message));
  } else if (link_ != nullptr) {
    link_->Send(protocol::Encode(message));
  }
}

void Synchronizer::Carry(const protocol::ParticipantActions& actions) {
  // Queue the work before dropping staged bytes, because the queued work shares ownership of these
  // bytes.
  if (actions.merge) QueueMerge(*actions.merge);
  if (actions.measure) QueueCommit(*actions.measure, true, {});
  if (actions.apply) QueueCommit(*actions.apply, false, actions.squares);
  for (const protocol::Name& name : actions.forget) staged_.erase(name);
  for (const protocol::Name& name : actions.refused) {
    service_.WithSession(name.worker, name.incarnation, [&](PeerSession& session) {
      session.Refuse(name.sequence, Aborted("the state is rolled back to a checkpoint"));
    });
  }
  for (const protocol::Drawn& drawn : actions.drawn) {
    if (store_ != nullptr) store_->Drew(drawn.worker, drawn.count);
  }
  for (const protocol::Answer& answer : actions.answers) {
    const int64_t drawn = DrawnBy(answer.name.worker);
    const uint16_t flags = answer.dropped ? wire::kDropped : 0;
    service_.WithSession(answer.name.worker, answer.name.incarnation, [&](PeerSession& session) {
      session.Answer(answer.name.sequence, answer.step, flags, drawn, true);
    });
  }
  if (actions.voided && store_ != nullptr) {
    service_.Forget(store_);
    store_ = nullptr;
  }
  // Send messages last: the coordinator on ps 0 replies at once, and its reply may call this
  // function again.
  for (const protocol::ToCoordinator& message : actions.messages) SendToCoordinator(message);
}

void Synchronizer::Carry(const protocol::CoordinatorActions& actions) {
  for (const protocol::HoldResult& hold : actions.holds) {
    const PendingHold pending = holds_[hold.worker];
    holds_.erase(hold.worker);
    service_.WithSession(hold.worker, pending.incarnation, [&](PeerSession& session) {
      session.ReplyTo(pending.sequence,
                      hold.granted ? OkStatus() : Aborted("the servers hold different states"));
    });
  }
  for (const protocol::Lapse& lapse : actions.lapses)
    service_.TellLapse(coordinator_->step(), lapse);
  for (const protocol::Worker& worker : actions.returned) service_.TellReturn(worker);
  if (!actions.absent.empty()) {
    absent_ = actions.absent;
    service_.TellAbsent(absent_);
  }
  for (const protocol::Again& again : actions.again) {
    const int64_t drawn = DrawnBy(again.worker);
    service_.WithSession(again.worker, again.incarnation, [&](PeerSession& session) {
      session.Answer(again.sequence, again.step, wire::kAgain, drawn, false);
    });
  }
  for (const auto& [server, message] : actions.messages) {
    if (server == 0) {
      Carry(participant_.OnMessage(message));
    } else {
      service_.SendToServer(server, protocol::Encode(message));
    }
  }
}

// ---- applying

void Synchronizer::QueueMerge(const protocol::Merge& merge) {
  Work work;
  work.store = store_;
  work.updates = {staged_[merge.into], staged_[merge.from]};
  work_.push_back(std::move(work));
  wake_.NotifyAll();
}

void Synchronizer::QueueCommit(const protocol::Commit& commit, bool measures,
                               const std::vector<double>& squares) {
  Work work{
      .commit = commit, .measures = measures, .squares = squares, .store = store_, .updates = {}};
  // The work shares ownership of the updates, because the state may be voided while they are being
  // applied.
  for (const protocol::Name& name : commit.set) work.updates.push_back(staged_[name]);
  work_.push_back(std::move(work));
  wake_.NotifyAll();
}

void Synchronizer::ApplyLoop() {
  for (;;) {
    Work work;
    {
      MutexLock lock(mutex_);
      while (work_.empty() && !stopping_) wake_.Wait(mutex_);
      if (stopping_) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    // Run without the lock, so that contributions can be staged during the work.
    CarryOut(work);
  }
}

void Synchronizer::CarryOut(const Work& work) {
  for (const auto& update : work.updates) update->DropApplied();
  if (!work.commit) return work.updates[0]->Absorb(*work.updates[1]);
  const protocol::Commit& commit = *work.commit;
  SumInPairs(commit.set, work.updates);
  const bool clips = work.store->definition().clipping.kind != optimizer::ClipKind::kNone;
  if (clips) SumIntoFirst(work.updates);
  // If the state has been voided in the meantime, the participant ignores the result.
  if (work.measures) {
    std::vector<double> squares = work.updates[0]->SquaresOfMean(stream_);
    MutexLock lock(mutex_);
    return Carry(participant_.Measured(commit.epoch, commit.step, std::move(squares)));
  }
  Apply(work, commit);
  MutexLock lock(mutex_);
  Carry(participant_.Applied(commit.epoch, commit.step));
}

void Synchronizer::Apply(const Work& work, const protocol::Commit& commit) {
  Store& store = *work.store;
  if (commit.learning_rate) store.UseLearningRate(*commit.learning_rate);
  const bool by_value = store.definition().clipping.kind == optimizer::ClipKind::kValue;
  std::vector<const std::byte*> updates(work.updates.size());
  std::vector<int> counts(work.updates.size());
  for (int shard : store.shards()) {
    if (store.rows_of(shard) != nullptr) {
      ApplyRows(work, commit, shard, by_value);
      continue;
    }
    if (by_value) work.updates[0]->ClipMean(shard);
    for (size_t i = 0; i < updates.size(); ++i) {
      updates[i] = work.updates[i]->update(shard);
      counts[i] = work.updates[i]->count(shard);
    }
    sum_.resize(std::max(sum_.size(), store.bytes_of(shard)));
    store.ApplyMean(shard, commit.set, updates, sum_, commit.step, stream_, counts,
                    store.FactorOf(shard, work.squares));
    // Free the updates early, so that the next step can stage into their buffers while this step is
    // still being applied.
    for (const auto& update : work.updates) update->Free(shard);
  }
  // Set the step after all shards, so that a reader that sees the new step finds every update
  // applied.
  store.step() = commit.step + 1;
}

void Synchronizer::ApplyRows(const Work& work, const protocol::Commit& commit, int shard,
                             bool by_value) {
  Store& store = *work.store;
  Staging& sum = *work.updates[0];
  for (size_t i = 1; i < work.updates.size(); ++i) sum.Absorb(shard, *work.updates[i]);
  if (by_value) sum.ClipMean(shard);
  const int count = sum.count(shard);
  std::span<const std::byte> update;
  if (count > 0) {
    update = {sum.update(shard), store.rows_of(shard)->UpdateBytes(sum.rows(shard))};
  }
  store.ApplyMeanOfRows(shard, commit.set, update, sum.rows(shard), count, commit.step, stream_,
                        store.FactorOf(shard, work.squares));
  sum.Free(shard);
}

}  // namespace tfjob::ps
