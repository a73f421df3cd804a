// Runs the leader, members and socket intakes of a group on a simulated network. While the members
// train, faults occur, which are drawn from a seed: streams break and lose messages in transit;
// processes, including the leader's, crash, pause, restart, depart, leave and return; replaced
// processes wake up again; data connections are lost unnoticed or opened twice; steps or states
// reach only some members; the network is divided into two parts. If the group may shrink, it
// continues even without its leader, and some processes do not find its claim. If it is elastic,
// its number of tasks changes.
//
// Checks that two generations never train at the same time, that no step is lost, and that only one
// process at a time may write checkpoints. After the faults, all tasks must train together, and
// the first one must lead.
#include <gtest/gtest.h>

#include <set>

#include "runtime/base/env.h"
#include "runtime/collectives/membership/simulated_group.h"
#include "runtime/state/run_failure.h"
#include "tests/sanitized.h"

namespace tfjob::collectives {
namespace {

constexpr Duration kFaultsEnd{60s}, kScaledDown{100s}, kTick{250ms}, kStep{200ms};

class GroupSimulation : private SimulatedGroup {
 public:
  explicit GroupSimulation(uint64_t seed) : SimulatedGroup(seed) {
    const int tasks = static_cast<int>(Number(1, 6));
    size_ = tasks;
    rules_.shrinks = Chance(0.5);
    if (rules_.shrinks && Chance(0.4)) {
      // With a minimum of 1, a group may start over while another group is cut off in a divided
      // network. With a majority as the minimum, at most one group can have enough tasks.
      rules_.least_tasks = Chance(0.5) ? 1 : tasks / 2 + 1;
      size_ =
          Chance(0.5) ? rules_.least_tasks : static_cast<int>(Number(rules_.least_tasks, tasks));
      After(kFaultsEnd, [this, tasks] { Resize(tasks); });
      // Once all tasks train, the job is scaled down, and the first task may be evicted as well.
      After(kScaledDown, [this] { Resize(RandomSize(), /*evicts_first=*/Chance(0.5)); });
    }
    for (int task = 0; task < tasks; ++task) {
      tasks_.push_back({.task = StrCat("worker ", task), .address = StrCat("w", task, ":2222")});
      names_.push_back(tasks_.back().task);
      processes_.emplace_back();
      listed_.push_back(0);
      After(Time(0s, 3s), [this, task] { Start(task); });
    }
    const int64_t faults = Number(0, 12);
    for (int64_t i = 0; i < faults; ++i) After(Time(0s, kFaultsEnd), [this] { Fault(); });
    Repeat(kTick, [this] { TickAll(); });
    Repeat(kStep, [this] { Train(); });
  }

  // Returns "" if no check failed; otherwise, a description of the first failure.
  std::string Run() {
    RunUntil(kEnd - 30s, [this] { return !wrong_.empty(); });
    if (wrong_.empty()) CheckAllTrain();
    if (wrong_.empty() && Chance(0.5)) {
      failed_ = Chance(0.5);
      finished_ = true;
      Process& leader = *processes_[0];
      leader.leader->Finish(failed_ ? state::RunFailure("the loss is NaN") : OkStatus());
      Pump(leader);
      // A task that starts later must also learn of the end.
      if (size_ > 1) Restart(1, Time(0s, 5s));
      RunUntil(kEnd, [this] { return !wrong_.empty(); });
      if (wrong_.empty()) CheckAllEnded();
    }
    return wrong_;
  }
  // Returns whether generations of at least three different sizes have trained in an elastic group.
  bool WasResized() const { return rules_.elastic() && sizes_.size() >= 3; }
  // Returns whether a process has not found the claim of its group.
  bool KeptOutAny() const { return kept_out_ > 0; }
  // Returns whether a task other than the first one has led a generation that trained.
  bool WasTakenOver() const {
    return std::ranges::any_of(writes_, [](const auto& writes) { return writes.first != 0; });
  }

 private:
  // Takes the process out of the group, and informs the leader. The process joins again after
  // `back`.
  void Retire(Process& process, bool departs, Duration back) {
    const int64_t incarnation = process.incarnation;
    In(incarnation, [this, departs, back](Process& p) {
      p.trains = false;
      p.left = !departs;
      departs ? p.member->Depart() : p.member->Leave();
      After(back, [this, incarnation = p.incarnation] {
        In(incarnation, [this](Process& again) { JoinAgain(again); });
      });
    });
  }

  // Returns whether the process may stay alive while its task gets another process. A process must
  // not stay alive if it could continue alone: because no other task is left, or because the group
  // shrinks and the process leads a generation of two. In these cases, as in a job with a single
  // task, only the platform can prevent both the old and the new process from training.
  bool MayWake(const Process& process) const {
    if (rules_.elastic() && 2 * rules_.least_tasks <= static_cast<int>(tasks_.size())) return false;
    if (!rules_.shrinks && process.task != 0) return true;
    if (!process.member->InGeneration()) return false;
    const size_t members = process.member->formation().members.size();
    if (!rules_.shrinks) return members > 1;
    return members > 2 &&
           std::ranges::all_of(process.member->past(),
                               [](const PastGeneration& past) { return past.members.size() > 2; });
  }

  int RandomSize() {
    return static_cast<int>(Number(rules_.least_tasks, static_cast<int64_t>(tasks_.size())));
  }

  // Notifies the members of the process's generation that the process departs. In a job, the
  // process itself announces this before the next step.
  void Announce(const Process& process) {
    for (Process* member : CompleteGroup(process)) {
      if (member == &process) continue;
      member->member->NoteResigned({{.task = tasks_[static_cast<size_t>(process.task)].task,
                                     .incarnation = process.incarnation,
                                     .generation = process.channel.generation}});
    }
  }

  // Asks the tasks' processes to exit, and starts others if there should be any.
  void Evict(const std::vector<int>& tasks) {
    for (const int task : tasks) {
      const auto& process = processes_[static_cast<size_t>(task)];
      if (process && process->paused_until <= now_) Announce(*process);
    }
    for (const int task : tasks) {
      const auto& process = processes_[static_cast<size_t>(task)];
      if (!process) continue;
      In(process->incarnation, [](Process& p) {
        p.trains = false;
        p.member->Depart();
      });
      After(Time(1s, 5s), [this, task, incarnation = process->incarnation] {
        const auto& ends = processes_[static_cast<size_t>(task)];
        if (ends && ends->incarnation == incarnation) Restart(task, Time(0s, 5s));
      });
    }
  }

  // Changes the number of tasks, as a platform does: asks surplus processes to exit, and starts
  // missing ones.
  void Resize(int size, bool evicts_first = false) {
    std::vector<int> evicted;
    if (evicts_first) evicted.push_back(0);
    size_ = size;
    for (int task = 0; task < static_cast<int>(tasks_.size()); ++task) {
      const auto& process = processes_[static_cast<size_t>(task)];
      if (task < size) After(Time(0s, 5s), [this, task] { Start(task); });
      if (task >= size) listed_[static_cast<size_t>(task)] = 0;
      if (task >= size && process) evicted.push_back(task);
    }
    Evict(evicted);
  }

  // Restarts the tasks that the first one knows from its TF_CONFIG. The others may continue, led by
  // a task that the first one does not know.
  void RestartListed() {
    const Duration after = Time(2s, 15s);
    const int listed = processes_[0] ? processes_[0]->listed : 1;
    for (int task = 0; task < listed; ++task) {
      if (task < static_cast<int>(tasks_.size())) Restart(task, after);
    }
  }

  // Makes the process find the claim after some time or, sometimes, not at all. It then exits, and
  // another one is started.
  void FindClaim(Process& process) override {
    const int64_t claim = process.looks_for = process.member->ClaimToFind();
    if (claim == 0) return;
    const bool finds = now_ >= kFaultsEnd || Chance(0.7);
    After(Time(0s, 10s), [this, claim, finds, incarnation = process.incarnation] {
      In(incarnation, [this, claim, finds](Process& p) {
        if (p.member->ClaimToFind() != claim) return;
        if (finds) {
          p.found = claim;
          return p.member->FoundClaim(claim);
        }
        ++kept_out_;
        p.trains = false;
        p.member->Depart();
        After(Time(1s, 5s), [this, task = p.task, of = p.incarnation] {
          if (Process* const ends = processes_[static_cast<size_t>(task)].get();
              ends != nullptr && ends->incarnation == of) {
            Restart(task, 1s);
          }
        });
      });
    });
  }

  void Fault() {
    if (rules_.elastic() && Chance(0.4)) {
      return Resize(RandomSize());
    }
    if (rules_.elastic() && Chance(0.3)) return RestartListed();
    const int task = static_cast<int>(Number(0, static_cast<int64_t>(tasks_.size()) - 1));
    std::unique_ptr<Process>& process = processes_[static_cast<size_t>(task)];
    switch (Number(0, rules_.shrinks ? 12 : 7)) {
      case 0:
        return Restart(task, Time(0s, 15s));
      case 1:
        if (process) Pause(*process, Time(1s, 25s));
        return;
      case 2:
        if (!streams_.empty())
          Cut(streams_[static_cast<size_t>(Number(0, static_cast<int64_t>(streams_.size()) - 1))],
              Duration(0));
        return;
      case 3:  // an operation fails
        if (process) Fail(*process, Unavailable("a socket broke"));
        return;
      case 4:
        if (process && process->trains) Retire(*process, Chance(0.7), Time(0s, 10s));
        return;
      case 5:  // is asked to exit, and is replaced
        if (process) {
          Retire(*process, true, kEnd);
          Restart(task, Time(0s, 15s));
        }
        return;
      case 6:
        if (process && MayWake(*process)) Restart(task, Time(0s, 15s), /*wakes=*/true);
        return;
      case 7:
        lose_sockets_until_ = now_ + 3s;
        return;
      case 8:
        if (rules_.elastic() && 2 * rules_.least_tasks <= static_cast<int>(tasks_.size())) {
          return DivideBriefly();
        }
        return Divide(std::min(Time(1s, 30s), kFaultsEnd - now_));
      case 9:  // the first task comes back, but cannot connect to another one
        blocked_ = task;
        blocked_until_ = std::min(now_ + Time(10s, 50s), kFaultsEnd);
        return Restart(0, Time(5s, 15s));
      default:  // the first task is lost for a long time
        return Restart(0, Time(5s, 40s));
    }
  }

  // The group of the larger part must not start over while the network is divided
  // (LeaderRules::call_patience).
  void DivideBriefly() {
    if (std::exchange(was_divided_, true)) return;
    Divide(std::min(Time(1s, 5s), kFaultsEnd - now_));
  }

  void TickAll() {
    for (auto& process : processes_) {
      if (process && process->paused_until <= now_) Tick(*process);
    }
    for (auto& process : replaced_) {
      if (process->paused_until <= now_) Tick(*process);
    }
    CheckGenerations();
    CheckWriters();
  }

  // ---- invariants

  // Returns the processes of the generation if all its members are in it and can train.
  std::vector<Process*> CompleteGroup(const Process& process) {
    std::vector<Process*> group;
    if (process.member->phase() != GroupMember::Phase::kGoing) return {};
    for (const Member& member : process.member->formation().members) {
      Process* const other = Alive(member.incarnation);
      if (other == nullptr || other->channel != process.channel || other->paused_until > now_ ||
          other->member->phase() != GroupMember::Phase::kGoing ||
          !Reaches(process.task, other->task)) {
        return {};
      }
      group.push_back(other);
    }
    return group;
  }

  void Train() {
    std::set<DataChannel> seen;
    std::vector<std::vector<Process*>> groups;
    const auto add = [&](const std::unique_ptr<Process>& process) {
      if (!process || seen.contains(process->channel)) return;
      std::vector<Process*> group = CompleteGroup(*process);
      if (group.empty()) return;
      seen.insert(process->channel);
      groups.push_back(std::move(group));
    };
    std::ranges::for_each(processes_, add);
    std::ranges::for_each(replaced_, add);
    Expect(groups.size() <= 1, "two generations train at the same time");
    for (const auto& group : groups) TrainOnce(group);
  }

  void TrainOnce(const std::vector<Process*>& group) {
    if (shared_.insert(group[0]->channel).second) return ShareState(group);
    const std::unique_ptr<Leader>& leader = group[0]->leader;
    Expect(leader != nullptr, "rank 0 does not lead");
    if (leader != nullptr && leader->TaskWaits(now_)) {
      for (const Process* process : group) {
        In(process->incarnation, [this](Process& p) { JoinAgain(p); });
      }
      return;
    }
    TakeStep(group);
  }

  // Makes all processes take over the newest state or, sometimes, only some of them; other
  // processes then lose their states.
  void ShareState(const std::vector<Process*>& group) {
    const FormOrder& order = group[0]->member->formation();
    const Member& newest = order.members[static_cast<size_t>(order.source)];
    Variables source = group[static_cast<size_t>(order.source)]->variables;
    sizes_.insert(group.size());
    if (newest.step < 0 && rules_.shrinks) source.claim = ++last_claim_;
    source.step = std::max<int64_t>(source.step, 0);
    CheckNoneWasReplaced(group);
    for (Process* process : group) process->left = false;
    CheckNothingIsLost(source, /*starts_over=*/rules_.elastic() && newest.step < 0);
    source.generation = order.generation;
    const bool breaks = now_ < kFaultsEnd && Chance(0.1);
    for (size_t rank = 0; rank < group.size(); ++rank) {
      if (breaks && Chance(0.5)) {
        if (!HasStateOf(order.members[rank], newest)) group[rank]->variables = {};
        continue;
      }
      Expect(source.claim == 0 || newest.step < 0 || order.members[rank].step >= 0 ||
                 group[rank]->found != 0,
             "a task takes part that has not found the claim");
      Expect(newest.step < 0 || !HasStateOf(order.members[rank], newest) ||
                 group[rank]->variables.id == source.id,
             "a task keeps a state that is not that of the others");
      group[rank]->variables = source;
    }
    if (breaks) return Fail(*group[0], Unavailable("a socket broke"));
    if (group[0]->leader) group[0]->leader->NoteClaim(source.claim);
    // All members have exchanged data, but sometimes only some of them know it.
    const bool unknown = now_ < kFaultsEnd && Chance(0.1);
    for (Process* process : group) {
      if (!unknown || Chance(0.5)) process->member->Shared(order.generation);
    }
    if (unknown) Fail(*group[0], Unavailable("a socket broke"));
  }

  // A process that was replaced can return only if no task in the group knows that it was replaced.
  // This is possible if the leader has been replaced as well. The steps of the replacement are then
  // lost until the replacement returns.
  void CheckNoneWasReplaced(const std::vector<Process*>& group) {
    for (const Process* process : group) {
      const std::string& task = tasks_[static_cast<size_t>(process->task)].task;
      for (const Process* other : group) {
        Expect(!other->member->WasReplaced(task, process->incarnation),
               "a process takes part that was replaced");
      }
      if (IsReplaced(process->incarnation)) committed_ = {};
    }
  }

  // Expects that, as long as some process has the state of the last step, no later generation
  // begins with another state. An elastic group that starts over may miss processes that were cut
  // off or paused until recently.
  void CheckNothingIsLost(const Variables& source, bool starts_over) {
    bool known = false;
    for (const auto& process : processes_) {
      if (!process || !process->trains || process->left) continue;
      const Duration cut_off = std::max({process->paused_until, divided_until_, blocked_until_});
      if (starts_over && now_ < cut_off + rules_.call_patience) continue;
      known = known || process->variables.version() >= committed_.version();
    }
    Expect(!known || source.version() >= committed_.version(), "a step is lost");
    if (!known) committed_ = {};
  }

  // Applies one step on all members, or sometimes only on some of them.
  void TakeStep(const std::vector<Process*>& group) {
    Variables next = group[0]->variables;
    Expect(next.version() >= committed_.version(), "an earlier generation trains");
    const int64_t before = next.id;
    next.id = ++last_id_;
    ++next.step;
    const bool breaks = now_ < kFaultsEnd && Chance(0.02);
    bool all = true;
    for (Process* process : group) {
      Expect(process->variables.id == before, "members have different states");
      if (breaks && Chance(0.5)) {
        all = false;
      } else {
        process->variables = next;
      }
    }
    if (all) committed_ = next;
    if (breaks) Fail(*group[0], Unavailable("a socket broke"));
  }

  // A process may write checkpoints if it has led the last generation, and no other process can
  // lead one now.
  void CheckWriters() {
    if (!rules_.shrinks) return;
    std::vector<const Process*> writers;
    const auto add = [&](const std::unique_ptr<Process>& process) {
      if (!process || process->paused_until > now_ || process->leader == nullptr) return;
      const GroupMember& member = *process->member;
      if (member.LedLastShared() && process->leader->HasMajority(member.past())) {
        writers.push_back(process.get());
      }
    };
    std::ranges::for_each(processes_, add);
    std::ranges::for_each(replaced_, add);
    std::string names;
    for (const Process* writer : writers) {
      names +=
          StrCat(" ", tasks_[static_cast<size_t>(writer->task)].task, "#", writer->incarnation);
    }
    Expect(writers.size() <= 1, StrCat("several processes may write checkpoints:", names));
    for (const Process* writer : writers) {
      if (writer->trains && writer->variables.step >= 0) ++writes_[writer->task];
    }
  }

  void CheckGenerations() {
    std::set<DataChannel> going;
    for (const auto& process : processes_) {
      if (process && process->member->phase() == GroupMember::Phase::kGoing) {
        going.insert(process->channel);
      }
    }
    if (now_ <= kFaultsEnd + 3 * kLease) return;
    Expect(going.size() <= 1, "a task still goes in an earlier generation");
  }

  void CheckAllTrain() {
    Expect(processes_[0] != nullptr && processes_[0]->leader != nullptr,
           "the first task does not lead in the end");
    for (int task = 0; task < size_; ++task) {
      const auto& process = processes_[static_cast<size_t>(task)];
      Expect(process != nullptr, "a process is missing");
      if (process == nullptr) return;
      Expect(
          process->member->phase() == GroupMember::Phase::kGoing,
          StrCat(tasks_[static_cast<size_t>(process->task)].task,
                 " does not go in the end, in phase ", static_cast<int>(process->member->phase()),
                 ": ", process->member->Awaited().text, Message(process->member->end())));
      Expect(process->channel == processes_[0]->channel, "tasks go in several generations");
      Expect(process->member->formation().members.size() == static_cast<size_t>(size_),
             "not exactly the tasks of the job take part");
    }
  }

  void CheckAllEnded() {
    for (int task = 0; task < size_; ++task) {
      const auto& process = processes_[static_cast<size_t>(task)];
      if (process == nullptr) continue;
      const Status& end = process->member->end();
      Expect(process->member->phase() == GroupMember::Phase::kEnded,
             "a task does not hear of the end");
      Expect(failed_ ? state::IsRunFailure(end) : absl::IsCancelled(end),
             StrCat("a task ends with ", end.ToString()));
    }
    Expect(processes_[0]->leader->EndIsKnown(),
           "the leader waits for a task that knows of the end");
  }

  std::set<DataChannel> shared_;  // generations whose members have shared a state
  Variables committed_;           // the last step that all members have applied
  int64_t last_id_ = 0, last_claim_ = 0;
  int kept_out_ = 0;               // how many processes have not found the claim
  std::map<int, int64_t> writes_;  // by task
  bool was_divided_ = false;       // DivideBriefly has been called
  std::set<size_t> sizes_;         // of the generations that have trained
};

// TFJOB_SEED=n runs only the simulation with seed n.
TEST(GroupSimulation, EverySeedEndsWithAllTasksInOneGeneration) {
  const std::string one = GetEnv("TFJOB_SEED").value_or("");
  if (!one.empty()) {
    EXPECT_EQ(GroupSimulation(std::stoull(one)).Run(), "");
    return;
  }
  constexpr uint64_t kSeeds = kSanitized ? 100 : 1000;
  uint64_t taken_over = 0, resized = 0, kept_out = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    GroupSimulation simulation(seed);
    ASSERT_EQ(simulation.Run(), "") << "TFJOB_SEED=" << seed;
    taken_over += simulation.WasTakenOver() ? 1 : 0;
    resized += simulation.WasResized() ? 1 : 0;
    kept_out += simulation.KeptOutAny() ? 1 : 0;
  }
  EXPECT_GT(taken_over, kSeeds / 10);
  EXPECT_GT(resized, kSeeds / 50);
  EXPECT_GT(kept_out, kSeeds / 20);
}

}  // namespace
}  // namespace tfjob::collectives
