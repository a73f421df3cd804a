#include "runtime/strategy/multi_worker_mirrored_strategy.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/strategy/positions.h"
#include "runtime/strategy/replica.h"

namespace tfjob::strategy {
namespace {

constexpr Logger kGroupLog("strategy");

// Exchanges the facts that all tasks need at the start of a step.
class Announcements {
 public:
  void SetRanks(int ranks) { words_.assign(kFixed + static_cast<size_t>(ranks), 0); }

  // The announcement of one task.
  struct Own {
    int64_t examples = 0;      // of this task for the step
    bool ending = false;       // the task was asked to exit, and takes no further step
    bool others_join = false;  // tasks are waiting to join; set only by the leader
  };

  // Sums the announcements of all ranks. All ranks must call Exchange.
  Status Exchange(collectives::Communicator& communicator, const Own& own) {
    std::ranges::fill(words_, 0);
    words_[0] = own.examples;
    words_[1] = own.examples > 0 ? 1 : 0;
    words_[2] = own.others_join ? 1 : 0;
    words_[kFixed + static_cast<size_t>(communicator.rank())] = own.ending ? 1 : 0;
    return communicator.AllReduce(std::as_writable_bytes(std::span(words_)), DType::kInt64,
                                  collectives::Reduction::kSum);
  }
  Shares shares() const { return {.examples = words_[0], .ranks_with_examples = words_[1]}; }
  bool OthersJoin() const { return words_[2] > 0; }
  bool Ends(int rank) const { return words_[kFixed + static_cast<size_t>(rank)] > 0; }
  bool AnyEnds() const {
    return std::any_of(words_.begin() + kFixed, words_.end(), [](int64_t w) { return w > 0; });
  }

 private:
  static constexpr size_t kFixed = 3;
  // The number of examples, the number of ranks that have any, whether other tasks are waiting to
  // join and, for each rank, whether it exits.
  std::vector<int64_t> words_;
};

class MultiWorkerMirrored : public Strategy {
 public:
  explicit MultiWorkerMirrored(MultiWorkerMirroredOptions options) : options_(std::move(options)) {}

  Status Create() {
    ASSIGN_OR_RETURN(replica_, Replica::Create(options_.common, options_.bytes_per_pack));
    agreement_ =
        StrCat("global batch: ", options_.global_batch,
               "\ntransport: ", config::kTransportNames[static_cast<size_t>(options_.transport)],
               "\n", options_.agreement, replica_->agreement());
    return OkStatus();
  }

  StatusOr<StepOutcome> Start() override {
    if (!std::exchange(trains_on_, false)) RETURN_IF_ERROR(Join());
    return Outcome();
  }

  StatusOr<StepOutcome> Step(const data::Batch& batch, MetricTotals& totals) override {
    while (true) {
      const StepOutcome before = Outcome();
      if (generation_.communicator == nullptr) RETURN_IF_ERROR(Join());
      if (drawn_ != before.drawn) return TakenOver(before, totals);
      if (Outcome().rank != before.rank || Outcome().ranks != before.ranks) return OtherPart();
      const Status announced = announcements_.Exchange(
          *generation_.communicator,
          {.examples = batch.size(), .others_join = options_.group->TaskWaits()});
      if (!announced.ok()) {
        RETURN_IF_ERROR(DropFailed(announced));
        continue;
      }
      if (announcements_.AnyEnds()) return OthersEnd();
      if (announcements_.OthersJoin()) {
        EndGeneration();
        continue;
      }
      if (announcements_.shares().examples <= 0) {
        return Internal("no task has examples for the step after ", global_step_);
      }
      RETURN_IF_ERROR(replica_->Compute(batch, global_step_, announcements_.shares()));
      const Status reduced = replica_->Reduce();
      if (reduced.ok()) return Apply(totals);
      RETURN_IF_ERROR(DropFailed(reduced));
    }
  }

  StatusOr<state::Snapshot> TakeSnapshot() override {
    ASSIGN_OR_RETURN(const state::SnapshotCopy copy, BeginSnapshot());
    return copy.Finish();
  }

  StatusOr<state::SnapshotCopy> BeginSnapshot() override {
    const bool follows = drawn_ == global_step_;  // the step implies the position
    return replica_->BeginSnapshot(global_step_,
                                   follows ? "" : PositionRecord(options_.leader, drawn_));
  }

  // Keeps this task's state after the last step until the leader has ended the job. If the leader
  // is lost before it has saved the last state, the new leader can then take over this task's
  // state.
  Status Leave() override {
    const int64_t reached = global_step_;
    Status left = OkStatus();
    while (!Leads() && replica_->has_state() && left.ok()) {
      left = Join();
      if (left.ok() && global_step_ < reached) {
        trains_on_ = true;
        return Aborted("the group goes on from step ", global_step_, ", before the last step");
      }
    }
    Drop();
    if (Leads() && left.ok()) return OkStatus();  // Finish follows
    const Status told = options_.group->Leave();
    return left.ok() || absl::IsCancelled(left) ? told : left;
  }

  Status Withdraw() override {
    if (generation_.communicator != nullptr) {
      // The group limits how long this exchange takes, because the process was asked to exit.
      const Status told = announcements_.Exchange(*generation_.communicator, {.ending = true});
      if (told.ok()) EndGeneration();
    }
    Drop();
    return options_.group->Depart(/*kept_out=*/false);
  }

  Status Finish() override { return options_.group->Finish(); }

  Status Fail(const Status& failure) override {
    if (generation_.communicator != nullptr) generation_.communicator->Abort(failure);
    Drop();
    return options_.group->Fail(failure);
  }

  std::vector<state::PeerState> Peers() override { return options_.group->Peers(); }
  bool Leads() const override {
    if (!options_.shrinks) return options_.leads;
    return !generation_.members.empty() && generation_.rank == 0;
  }
  std::function<bool()> WriteGuard() override { return options_.group->WriteGuard(); }
  // The numbers of generations increase only as long as a task of the group is alive.
  int64_t WriteTerm() const override {
    return options_.shrinks ? claim_.first_term + state_generation_ : 0;
  }
  RunClaim Claim() const override { return claim_; }
  std::string_view AboutStuckTasks() const override { return "the others wait for it"; }
  bool OthersContinue() const override { return false; }

 private:
  StepOutcome Outcome() const {
    return {.global_step = global_step_,
            .drawn = drawn_,
            .rank = generation_.rank,
            .ranks = static_cast<int>(generation_.members.size())};
  }

  // Joins a generation. Afterwards, all tasks of the generation have the same state.
  Status Join() {
    while (true) {
      Drop();
      const bool keeps = replica_->has_state() && !goes_back_;
      ASSIGN_OR_RETURN(generation_, options_.group->Join({.step = keeps ? drawn_ : -1,
                                                          .state_generation = state_generation_,
                                                          .agreement = agreement_,
                                                          .begins_again = options_.begins_again}));
      // Drop the state only now: if the process had been asked to exit during the wait, it would
      // have saved the state.
      if (goes_back_) replica_->Forget();
      goes_back_ = false;
      Status shared = ShareState();
      if (shared.ok()) {
        state_generation_ = generation_.number;
        // A member that joins again ends the generation, so no member may join again while others
        // are still receiving the state.
        shared = generation_.communicator->Barrier();
        if (shared.ok()) {
          options_.group->StateIsShared();
          return OkStatus();
        }
      }
      if (!provided_.ok()) return provided_;
      if (!kept_out_.ok()) {
        Drop();
        (void)options_.group->Depart(/*kept_out=*/true);
        return kept_out_;
      }
      RETURN_IF_ERROR(DropFailed(shared));
      // The state is complete, and no step has started.
      if (state_generation_ == generation_.number) goes_back_ = false;
    }
  }

  // Sends the newest state to the tasks that have a different one. Returns the communicator's
  // error, the leader's error if it cannot provide a state, or this task's error if the group must
  // continue without this task.
  Status ShareState() {
    collectives::Communicator& communicator = *generation_.communicator;
    announcements_.SetRanks(communicator.size());
    const int root = generation_.source;
    const int64_t newest = MemberOf(root).step;
    const bool sends = generation_.rank == root;
    if (newest < 0 && sends) {
      provided_ = ProvideState();
      RETURN_IF_ERROR(provided_);
    }
    RETURN_IF_ERROR(replica_->Connect(communicator));
    const auto lacks = [&](const collectives::Member& member) {
      return !HasStateOf(member, MemberOf(root));
    };
    if (newest >= 0 && std::ranges::none_of(generation_.members, lacks)) return OkStatus();
    std::array<int64_t, 4> position = {global_step_, drawn_, claim_.first_term,
                                       claim_.written ? 1 : 0};
    RETURN_IF_ERROR(communicator.Broadcast(std::as_writable_bytes(std::span(position)), root));
    const bool receives = !sends && (newest < 0 || lacks(MemberOf(generation_.rank)));
    const RunClaim claim{.first_term = position[2], .written = position[3] != 0};
    if (options_.shrinks && newest >= 0 && receives && claim.written) {
      kept_out_ = options_.check_shares(claim);
      RETURN_IF_ERROR(kept_out_);
    }
    RETURN_IF_ERROR(replica_->Broadcast(communicator, root, receives));
    if (receives) TakeOver(position[0], position[1]);
    claim_ = claim;
    return OkStatus();
  }

  const collectives::Member& MemberOf(int rank) const {
    return generation_.members[static_cast<size_t>(rank)];
  }

  void TakeOver(int64_t step, int64_t drawn) {
    if (generation_.number > 1) {
      kGroupLog.Info("took over the state of another task",
                     {{"task", MemberOf(generation_.source).task}, {"step", step}});
    }
    global_step_ = step;
    drawn_ = drawn;
  }

  Status ProvideState() {
    const state::Snapshot memory = replica_->Memory();
    ASSIGN_OR_RETURN(const state::Snapshot snapshot, options_.common.provide_state(&memory));
    RETURN_IF_ERROR(replica_->Load(snapshot));
    global_step_ = snapshot.global_step;
    drawn_ = OnlyPosition(snapshot.ledger).value_or(global_step_);
    if (options_.shrinks) {
      ASSIGN_OR_RETURN(claim_, options_.claim_run());
    }
    return OkStatus();
  }

  // Returns the outcome of a step that this task did not apply itself. The task received the state
  // after the step from a task that applied it.
  StepOutcome TakenOver(const StepOutcome& before, MetricTotals& totals) const {
    StepOutcome outcome = Outcome();
    const bool one = drawn_ == before.drawn + 1;
    outcome.skipped = one && global_step_ == before.global_step;
    if (one && global_step_ == before.global_step + 1) replica_->AddLastTotals(totals);
    return outcome;
  }

  StatusOr<StepOutcome> Apply(MetricTotals& totals) {
    ASSIGN_OR_RETURN(const bool applied, replica_->Apply(global_step_, totals));
    ++drawn_;
    if (applied) ++global_step_;
    failures_ = 0;
    if (applied && global_step_ == options_.last_step) {
      // Wait for the other tasks, because a task that has failed before this barrier takes over the
      // state of a task that has not.
      (void)generation_.communicator->Barrier();
    }
    StepOutcome outcome = Outcome();
    outcome.skipped = !applied;
    return outcome;
  }

  // Returns an outcome that makes the caller redraw the batch, because the batch was split among
  // different members than those of the generation.
  StepOutcome OtherPart() const {
    StepOutcome outcome = Outcome();
    outcome.dropped = true;
    return outcome;
  }

  // Drops the communicator once all ranks have received the announcements.
  void EndGeneration() {
    (void)generation_.communicator->Barrier();
    Drop();
  }

  // Ends the generation. The next step waits for the next generation; the batch is drawn again.
  StepOutcome OthersEnd() {
    std::vector<collectives::Member> departing;
    for (int rank = 0; rank < generation_.communicator->size(); ++rank) {
      if (!announcements_.Ends(rank)) continue;
      const collectives::Member& member = MemberOf(rank);
      departing.push_back(member);
      options_.on_event({.kind = state::PeerEvent::Kind::kServerEnding,
                         .peer = member.task,
                         .address = member.address,
                         .message = StrCat(member.task, " at ", member.address,
                                           " was asked to end; the others keep the state and "
                                           "form a new group")});
    }
    options_.group->NoteDepartures(generation_.number, departing);
    EndGeneration();
    StepOutcome outcome = Outcome();
    outcome.dropped = true;
    return outcome;
  }

  // Drops the generation after an error of its communicator. Returns the error if this task must
  // not join again, because an exchange has taken longer than strategy.timeout_seconds, or because
  // errors other than the loss of a task have occurred in several generations in a row.
  Status DropFailed(const Status& why) {
    // Aborted means that a task was asked to exit, and that none was lost.
    goes_back_ = options_.goes_back && !absl::IsAborted(why);
    kGroupLog.Warning(goes_back_ ? "an exchange has failed; going back to the last checkpoint"
                                 : "an exchange has failed; joining the next generation",
                      {{"generation", generation_.number}, {"because", Message(why)}});
    Drop();
    if (absl::IsDeadlineExceeded(why)) return why;
    if (absl::IsUnavailable(why) || absl::IsCancelled(why) || absl::IsAborted(why)) {
      return OkStatus();
    }
    constexpr int kMostFailures = 3;
    return ++failures_ < kMostFailures ? OkStatus() : why;
  }

  // Drops the communicator. Operations in progress on other tasks fail only if they still need this
  // task.
  void Drop() {
    replica_->Disconnect();
    generation_.communicator.reset();
  }

  MultiWorkerMirroredOptions options_;
  std::string agreement_;
  std::unique_ptr<Replica> replica_;
  collectives::Generation generation_;  // its communicator is null between generations
  Announcements announcements_;
  int64_t state_generation_ = 0;  // see collectives::Joining
  RunClaim claim_;                // equal in all tasks that have a state
  Status provided_;               // the leader's error, if it cannot provide a state
  Status kept_out_;               // why the group must continue without this task
  bool goes_back_ = false;        // the next generation starts from the last checkpoint
  bool trains_on_ = false;        // Leave has returned Aborted, in a generation that trains
  int failures_ = 0;              // since the last step, not counting losses of tasks
  int64_t global_step_ = 0;
  int64_t drawn_ = 0;  // the number of global batches, including skipped ones
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeMultiWorkerMirrored(MultiWorkerMirroredOptions options) {
  auto strategy = std::make_unique<MultiWorkerMirrored>(std::move(options));
  RETURN_IF_ERROR(strategy->Create());
  return std::unique_ptr<Strategy>(std::move(strategy));
}

}  // namespace tfjob::strategy
