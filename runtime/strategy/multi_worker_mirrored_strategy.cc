#include "runtime/strategy/multi_worker_mirrored_strategy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/strategy/group/announcements.h"
#include "runtime/strategy/group/losses.h"
#include "runtime/strategy/group/shared_validation.h"
#include "runtime/strategy/positions.h"
#include "runtime/strategy/replica.h"

namespace tfjob::strategy {
namespace {

constexpr Logger kGroupLog("strategy");

class MultiWorkerMirrored : public Strategy {
 public:
  explicit MultiWorkerMirrored(MultiWorkerMirroredOptions options) : options_(std::move(options)) {}

  Status Create() {
    ASSIGN_OR_RETURN(replica_, Replica::Create(options_.common, options_.bytes_per_pack));
    agreement_ =
        StrCat("global batch: ", options_.global_batch,
               "\ntransport: ", config::kTransportNames[static_cast<size_t>(options_.transport)],
               "\nimplementation: ",
               config::kImplementationNames[static_cast<size_t>(options_.implementation)],
               "\ncompression: ",
               config::kCompressionNames[static_cast<size_t>(options_.common.compression)], "\n",
               options_.agreement, replica_->agreement());
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
      const Status announced =
          Announce({.examples = batch.size(), .others_join = options_.group->TaskWaits()});
      if (!announced.ok()) {
        RETURN_IF_ERROR(DropFailed(announced));
        continue;
      }
      const Demand demand = announcements_.Demanded();
      if (demand == Demand::kEndRun) return RunEnds();
      if (demand == Demand::kDepart) return OthersEnd();
      if (demand != Demand::kStep) {
        RETURN_IF_ERROR(Heed(demand));
        continue;
      }
      replica_->TakeLearningRate(announcements_.learning_rate());
      const Shares shares{.examples = announcements_.examples(),
                          .ranks_with_examples = announcements_.ranks_with_examples()};
      if (shares.examples <= 0) {
        return Internal("no task has examples for the step after ", global_step_);
      }
      if (!replica_->IsCompiled(batch)) {
        const AnnouncedPhase phase(*this, state::WorkPhase::kCompiling);
        replica_->Compile(batch);
      }
      RETURN_IF_ERROR(replica_->Compute(batch, global_step_, shares));
      const Status reduced = replica_->Reduce();
      if (reduced.ok()) return Apply(totals);
      RETURN_IF_ERROR(DropFailed(reduced));
    }
  }

  StatusOr<ValidationOutcome> Validate(const Validation& validation) override {
    // After the last step, tasks leave the group, so this task does not depend on the others.
    if (global_step_ >= options_.last_step || run_ended_) return Strategy::Validate(validation);
    const StepOutcome before = Outcome();
    const int64_t states = states_received_;
    while (true) {
      if (generation_.communicator == nullptr) RETURN_IF_ERROR(Join());
      if (drawn_ != before.drawn || global_step_ != before.global_step ||
          states_received_ != states) {
        return ValidationOutcome{.totals = std::nullopt, .next = Outcome()};
      }
      const Status announced =
          Announce({.others_join = options_.group->TaskWaits(), .validates = true});
      if (!announced.ok()) {
        RETURN_IF_ERROR(DropFailed(announced));
        continue;
      }
      const Demand demand = announcements_.Demanded();
      if (demand != Demand::kValidate) {
        RETURN_IF_ERROR(Heed(demand));
        continue;
      }
      ASSIGN_OR_RETURN(std::optional<MetricTotals> totals, ShareValidation(&validation));
      if (totals) return ValidationOutcome{.totals = std::move(totals), .next = Outcome()};
    }
  }

  Status SetLearningRate(double rate) override {
    return replica_->SetLearningRate(rate, global_step_);
  }
  std::optional<state::LearningRate> learning_rate() const override {
    return replica_->learning_rate();
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

  StatusOr<StepOutcome> EndRun() override {
    const int64_t reached = global_step_;
    while (true) {
      if (generation_.communicator == nullptr) RETURN_IF_ERROR(Join());
      if (global_step_ < reached) {
        StepOutcome outcome = Outcome();
        outcome.rolled_back = true;
        return outcome;
      }
      const Status announced = Announce({.ends_run = true});
      const Demand demand = announcements_.Demanded();
      if (announced.ok() && demand == Demand::kEndRun) return RunEnds();
      RETURN_IF_ERROR(announced.ok() ? Heed(demand) : DropFailed(announced));
    }
  }

  // Keeps this task's state after the last step until the leader has ended the job. If the leader
  // is lost before it has saved the last state, the new leader can then take over this task's
  // state.
  Status Leave() override {
    const int64_t reached = global_step_;
    Status left = OkStatus();
    bool heard = true;  // the members of the generation know that the run has ended early
    while ((!Leads() || !heard) && replica_->has_state() && left.ok()) {
      left = Join();
      if (left.ok() && global_step_ < reached) {
        trains_on_ = true;
        return Aborted("the group goes on from step ", global_step_, ", before the last step");
      }
      if (left.ok() && run_ended_) {
        left = TellRunEnded();
        heard = generation_.communicator != nullptr;
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
      const Status told = Announce({.ending = true});
      if (told.ok()) EndGeneration();
    }
    Drop();
    return options_.group->Depart();
  }

  Status Finish() override { return options_.group->Finish(); }

  Status Fail(const Status& failure) override {
    if (generation_.communicator != nullptr) generation_.communicator->Abort(failure);
    Drop();
    return options_.group->Fail(failure);
  }

  std::vector<state::PeerState> Peers() override { return options_.group->Peers(); }
  void Announce(state::WorkPhase phase, Duration limit) override {
    options_.group->Announce(phase, limit);
  }
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
  void NoteClaimWritten() override {
    claim_.written = true;
    options_.group->NoteClaim(claim_.first_term);
  }
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
                                                          .begins_again = options_.begins_again,
                                                          .claim = WrittenClaim()}));
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
          options_.group->NoteClaim(WrittenClaim());
          options_.group->StateIsShared();
          losses_.Note(generation_.members, global_step_, options_.on_event);
          return OkStatus();
        }
      }
      if (!provided_.ok()) return provided_;
      RETURN_IF_ERROR(DropFailed(shared));
      // The state is complete, and no step has started.
      if (state_generation_ == generation_.number) goes_back_ = false;
    }
  }

  // Returns the number that every task must find in model_dir, or 0 if there is none.
  int64_t WrittenClaim() const { return claim_.written ? claim_.first_term : 0; }

  // Sends the newest state to the tasks that have a different one. Returns the communicator's
  // error, or the leader's error if it cannot provide a state.
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
    RETURN_IF_ERROR(replica_->Broadcast(communicator, root, receives));
    if (receives) TakeOver(position[0], position[1]);
    claim_ = {.first_term = position[2], .written = position[3] != 0};
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
    validation_.Forget();
    ++states_received_;
    global_step_ = step;
    drawn_ = drawn;
  }

  Status ProvideState() {
    const state::Snapshot memory = replica_->Memory();
    const AnnouncedPhase phase(*this, state::WorkPhase::kRestoring, state::kRestoreLimit);
    ASSIGN_OR_RETURN(const state::Snapshot snapshot, options_.common.provide_state(&memory));
    RETURN_IF_ERROR(replica_->Load(snapshot));
    validation_.Forget();
    ++states_received_;
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
  // members other than those of the generation.
  StepOutcome OtherPart() const {
    StepOutcome outcome = Outcome();
    outcome.dropped = true;
    return outcome;
  }

  // Makes the latest step the last one. Waits for the other tasks, as after the last step: the
  // leader must not end the job before all of them know that the run has ended.
  StepOutcome RunEnds() {
    run_ended_ = true;
    (void)generation_.communicator->Barrier();
    StepOutcome outcome = Outcome();
    outcome.dropped = true;
    outcome.run_ended = true;
    return outcome;
  }

  // Notifies the members of a new generation that the run has ended: some of them may be
  // replacements, or may have been lost before they heard it. Their first operation in this
  // generation is the same exchange. If it fails, drops the generation, and returns an error only
  // if this task must not join again.
  Status TellRunEnded() {
    while (generation_.communicator != nullptr) {
      const Status told = Announce({.ends_run = true});
      if (!told.ok()) return DropFailed(told);
      const Demand demand = announcements_.Demanded();
      if (demand == Demand::kEndRun) {
        (void)generation_.communicator->Barrier();
        return OkStatus();
      }
      RETURN_IF_ERROR(Heed(demand));
    }
    return OkStatus();
  }

  Status Announce(Announcements::Own own) {
    own.has_result = validation_.HasResult(drawn_);
    own.learning_rate = replica_->learning_rate();
    return announcements_.Exchange(*generation_.communicator, own);
  }

  // Does what the announcements demand of every task, except to take a step or to end the run.
  Status Heed(Demand demand) {
    switch (demand) {
      case Demand::kValidate:
        return ShareValidation(nullptr).status();
      case Demand::kDepart:
        (void)OthersEnd();
        return OkStatus();
      case Demand::kAdmit:
        EndGeneration();
        return OkStatus();
      case Demand::kStep:
      case Demand::kEndRun:
        break;
    }
    return Internal("the tasks of the group do not agree on what follows step ", global_step_);
  }

  // Takes part in a validation that at least one task of the generation has announced.
  // `validation` is null if this task has not announced it. Returns nullopt if the validation must
  // be repeated; the generation may then have ended.
  StatusOr<std::optional<MetricTotals>> ShareValidation(const Validation* validation) {
    std::vector<std::string> names;
    for (const collectives::Member& member : generation_.members) names.push_back(member.task);
    ASSIGN_OR_RETURN(
        SharedValidation::Outcome outcome,
        validation_.Share(
            *generation_.communicator, announcements_, names,
            {.validation = validation,
             .drawn = drawn_,
             .is_current = [this] { return options_.group->IsCurrent(generation_.number); },
             .announce =
                 [this](state::WorkPhase phase) { Announce(phase, state::kUsualPhaseLimit); }}));
    if (!outcome.exchanged.ok()) RETURN_IF_ERROR(DropFailed(outcome.exchanged));
    RETURN_IF_ERROR(outcome.evaluated);
    return std::move(outcome.totals);
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
    losses_.Depart(departing);
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
    losses_.Explain(std::string(Message(why)), /*departs=*/absl::IsAborted(why));
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
  SharedValidation validation_;
  Losses losses_;
  int64_t state_generation_ = 0;  // see collectives::Joining
  RunClaim claim_;                // equal in all tasks that have a state
  Status provided_;               // the leader's error, if it cannot provide a state
  bool goes_back_ = false;        // the next generation starts from the last checkpoint
  bool trains_on_ = false;        // Leave has returned Aborted, in a generation that trains
  int64_t states_received_ = 0;   // from other tasks or from a checkpoint
  bool run_ended_ = false;        // a task has ended the run before its last step
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
