// Simulates whole jobs in virtual time, one per seed, in which messages are lost, delayed and
// duplicated, and tasks crash and restart.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>

#include "runtime/ps/protocol/coordinator.h"
#include "runtime/ps/protocol/participant.h"
#include "runtime/ps/protocol/simulated_batches.h"
#include "runtime/ps/protocol/simulated_squares.h"
#include "runtime/ps/protocol/simulated_tasks.h"

namespace tfjob::ps::protocol {
namespace {

constexpr Duration kFaultsEnd{3s};
constexpr Duration kEnd{6s};
// The lease is much longer than a step takes, unless a worker is stuck.
constexpr LeaseRule kLease{.factor = 5, .least = 500ms};

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed) {
    servers_.resize(static_cast<size_t>(Between(1, 3)));
    workers_.resize(static_cast<size_t>(Between(1, 4)));
    aggregate_ = Between(1, static_cast<int>(workers_.size()) + 2);
    gathers_ = Between(0, 1) == 1;
    squares_.SetGroups(std::max(0, Between(-2, 3)));
    loss_ = Between(0, 2) * 0.05;
    duplication_ = Between(0, 2) * 0.05;
    for (int i = 0; i < servers(); ++i) StartServer(i);
    for (int i = 0; i < workers(); ++i) StartWorker(i);
    Every(100ms, [this] { ChiefChecks(); });
    Every(250ms, [this] {
      for (int i = 0; i < servers(); ++i) TickServer(i);
    });
    if (Between(0, 3) > 0) PlanFaults();
  }

  void Run() {
    int64_t calm_step = 0;
    while (!events_.empty() && now_ < kEnd && !testing::Test::HasFatalFailure()) {
      Event event = events_.top();
      events_.pop();
      if (now_ < kFaultsEnd && event.at >= kFaultsEnd) calm_step = Step();
      now_ = event.at;
      event.act();
    }
    // The chief's data never ends, so at least one task always trains.
    EXPECT_GE(Step(), calm_step + 10) << "the job stands still";
  }
  int merges() const { return merges_; }
  int lapses() const { return lapses_; }
  int measured() const { return squares_.checked(); }
  int redrawn() const { return batches_.redrawn(); }
  bool waited() const { return waited_; }

 private:
  using Server = SimulatedServer;
  using Worker_ = SimulatedWorker;
  using Event = SimulatedEvent;

  int servers() const { return static_cast<int>(servers_.size()); }
  int workers() const { return static_cast<int>(workers_.size()); }
  Server& server(int i) { return servers_[static_cast<size_t>(i)]; }
  Worker_& worker(int i) { return workers_[static_cast<size_t>(i)]; }
  static Worker Id(int i) { return {i == 0 ? "chief" : "worker", i}; }
  static int Index(const Worker& id) { return id.index; }

  int Between(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  bool Chance(double p) { return std::bernoulli_distribution(p)(random_); }
  void At(Duration at, std::function<void()> act) { events_.push({at, ++order_, std::move(act)}); }
  void After(int low_ms, int high_ms, std::function<void()> act) {
    At(now_ + std::chrono::milliseconds(Between(low_ms, high_ms)), std::move(act));
  }
  void Every(Duration interval, std::function<void()> act) {
    At(now_ + interval, [this, interval, act] {
      act();
      Every(interval, act);
    });
  }
  // Delivers a message; while there are faults, it may be lost, duplicated or delayed.
  void Send(const std::function<void()>& deliver) {
    const bool faults = now_ < kFaultsEnd;
    if (faults && Chance(loss_)) return;
    const int copies = faults && Chance(duplication_) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      After(1, faults && Chance(0.02) ? 800 : 15, deliver);
    }
  }

  // ---- servers

  void StartServer(int i) {
    Server& s = server(i);
    s = {.alive = true, .incarnation = s.incarnation + 1};
    s.participant = std::make_unique<Participant>(s.incarnation);
    if (i == 0) s.coordinator = std::make_unique<Coordinator>(servers(), kLease);
    Carry(i, s.participant->Connected(now_));
  }

  void TickServer(int i) {
    Server& s = server(i);
    if (!s.alive) return;
    Carry(i, s.participant->Tick(now_));
    if (s.coordinator) Carry(s.coordinator->Tick(now_));
  }

  void Carry(int i, const ParticipantActions& actions) {
    for (const ToCoordinator& message : actions.messages) {
      auto deliver = [this, i, message] {
        if (server(0).alive) Carry(server(0).coordinator->OnMessage(i, message));
      };
      if (i == 0) {
        At(now_, deliver);
      } else {
        Send(deliver);
      }
    }
    if (actions.merge) MergeOn(i, *actions.merge);
    if (actions.measure) Measure(i, *actions.measure);
    if (actions.apply) {
      const Commit commit = *actions.apply;
      squares_.Check(commit, servers(), actions.squares);
      const int64_t incarnation = server(i).incarnation;
      After(0, 20, [this, i, commit, incarnation] {
        if (server(i).incarnation == incarnation && server(i).alive) Apply(i, commit);
      });
    }
    for (const Drawn& drawn : actions.drawn) Draw(i, drawn);
    for (const Answer& answer : actions.answers) {
      Reply(i, answer.name, server(i).participant->epoch(), answer.step);
    }
    for (const Name& name : actions.refused) Reply(i, name, 0, 0);
  }

  void Draw(int i, const Drawn& drawn) {
    int64_t& known = server(i).drawn[drawn.worker];
    known = std::max(known, drawn.count);
  }
  int64_t DrawnBy(int i, const Worker& id) {
    if (i > 0) return 0;
    return std::max(server(0).drawn[id], server(0).coordinator->DrawnBy(id, backups()));
  }

  void Measure(int i, const Commit& commit) {
    squares_.Begin(i, commit);
    const int64_t incarnation = server(i).incarnation;
    After(0, 20, [this, i, commit, incarnation] {
      Server& s = server(i);
      if (s.incarnation != incarnation || !s.alive) return;
      Carry(i, s.participant->Measured(commit.epoch, commit.step, squares_.On(i, commit)));
    });
  }

  bool backups() const { return aggregate_ < workers(); }

  // Performs a merge at once. A participant requests a merge only before the commit of its step.
  void MergeOn(int i, const Merge& merge) {
    Server& s = server(i);
    if (s.summed_epoch != merge.epoch || s.summed_step != merge.step) s.sums.clear();
    s.summed_epoch = merge.epoch;
    s.summed_step = merge.step;
    std::vector<Name>& into = s.sums.try_emplace(merge.into, 1, merge.into).first->second;
    std::vector<Name>& from = s.sums.try_emplace(merge.from, 1, merge.from).first->second;
    ASSERT_FALSE(into.empty() || from.empty()) << "a contribution was summed twice";
    into.insert(into.end(), from.begin(), from.end());
    from.clear();
    ++merges_;
  }

  // Checks that every contribution that was summed is part of the commit, and was summed only once.
  void CheckSums(const Server& s, const Commit& commit) {
    if (s.summed_epoch != commit.epoch || s.summed_step != commit.step) return;
    std::set<Name> summed;
    for (const auto& [root, names] : s.sums) {
      for (const Name& name : names) {
        ASSERT_TRUE(summed.insert(name).second) << "summed twice: " << ToString(name);
        ASSERT_EQ(std::ranges::count(commit.set, name), 1) << "not committed: " << ToString(name);
      }
    }
  }

  void Apply(int i, const Commit& commit) {
    Server& s = server(i);
    const bool valid = s.participant->epoch() == commit.epoch;
    if (valid) {
      CheckSums(s, commit);
      ASSERT_EQ(s.participant->step(), commit.step) << "a step was left out";
      auto [known, first] = commits_.try_emplace({commit.epoch, commit.step}, commit.set);
      ASSERT_EQ(known->second, commit.set) << "servers applied different sets";
      ASSERT_EQ(commit.set.size(), static_cast<size_t>(aggregate_));
      for (const std::vector<Name>& set : s.lineage) {
        for (const Name& name : set) {
          ASSERT_EQ(std::ranges::count(commit.set, name), 0) << "applied twice: " << ToString(name);
        }
      }
      ASSERT_EQ(static_cast<int64_t>(s.lineage.size()), commit.step);
      s.lineage.push_back(commit.set);
      batches_.Check(commit.set, backups(), s.used);
    }
    Carry(i, s.participant->Applied(commit.epoch, commit.step));
  }

  // Checks that the first commit waits until all workers have joined.
  void CheckGathering(const ToParticipant& message) {
    Server& s = server(0);
    if (!std::holds_alternative<Commit>(message) || std::exchange(s.committed, true)) return;
    if (now_ >= s.gather_until) return;
    for (int i = 0; i < workers(); ++i) {
      ASSERT_TRUE(s.joined.contains(Id(i)) || worker(i).ended) << "did not wait for " << i;
    }
    waited_ = true;
  }

  void Carry(const CoordinatorActions& actions) {
    ASSERT_TRUE(actions.absent.empty() || now_ >= server(0).gather_until) << "gave up too early";
    for (const auto& [to, message] : actions.messages) {
      CheckGathering(message);
      auto deliver = [this, to = to, message = message] {
        if (server(to).alive) Carry(to, server(to).participant->OnMessage(message));
      };
      if (to == 0) {
        At(now_, deliver);
      } else {
        Send(deliver);
      }
    }
    for (const Again& again : actions.again) {
      Send([this, again, drawn = DrawnBy(0, again.worker)] {
        Worker_& w = worker(Index(again.worker));
        if (!w.alive || w.incarnation != again.incarnation || !w.awaiting) return;
        if (w.sequence != again.sequence || w.epoch == 0) return;
        w.drawn = drawn;
        Compute(Index(again.worker));
      });
    }
    lapses_ += static_cast<int>(actions.lapses.size());
    for (const Lapse& lapse : actions.lapses) ASSERT_GE(lapse.waited, kLease.least);
    for (const HoldResult& hold : actions.holds) {
      if (hold.granted) Save();
      holding_ = hold.granted && holding_;
    }
  }

  // ---- workers

  void StartWorker(int i) {
    Worker_& w = worker(i);
    w = {.alive = true, .ended = w.ended, .incarnation = w.incarnation + 1};
    Next(i);
  }

  // Sends the next contribution or a request for values, and repeats it until all servers
  // have answered.
  void Next(int i) {
    Worker_& w = worker(i);
    ++w.sequence;
    w.awaiting = true;
    w.answers.clear();
    if (w.epoch != 0) {
      batches_.Compute({Id(i), w.incarnation, w.sequence}, w.drawn + 1);
    }
    Transmit(i, w.incarnation, w.sequence);
  }

  void Transmit(int i, int64_t incarnation, uint64_t sequence) {
    Worker_& w = worker(i);
    if (!w.alive || w.incarnation != incarnation || w.sequence != sequence || !w.awaiting) return;
    const Name name{Id(i), w.incarnation, w.sequence};
    for (int s = 0; s < servers(); ++s) {
      if (w.answers.contains(s)) continue;
      Send(
          [this, s, i, name, epoch = w.epoch, step = w.step] { Receive(s, i, name, epoch, step); });
    }
    After(200, 300, [this, i, incarnation, sequence] { Transmit(i, incarnation, sequence); });
  }

  void Receive(int to, int from, const Name& name, int64_t epoch, int64_t step) {
    Server& s = server(to);
    if (!s.alive) return;
    int64_t& newest = s.newest[name.worker];
    if (name.incarnation < newest) return;
    newest = name.incarnation;
    const bool present = worker(from).alive && worker(from).incarnation == name.incarnation;
    if (to == 0 && present && !worker(from).ended) {
      s.joined.insert(name.worker);
      Carry(s.coordinator->Join(name.worker, name.incarnation));
    }
    if (epoch == 0) {
      if (s.participant->epoch() != 0)
        Reply(to, name, s.participant->epoch(), s.participant->step());
      return;
    }
    Carry(to, s.participant->Staged(epoch, step, name, batches_.Of(name)));
  }

  void Reply(int from, const Name& name, int64_t epoch, int64_t step) {
    Send([this, from, name, epoch, step, drawn = DrawnBy(from, name.worker)] {
      const int i = Index(name.worker);
      Worker_& w = worker(i);
      if (!w.alive || w.incarnation != name.incarnation || w.sequence != name.sequence) return;
      if (!w.awaiting) return;
      if (epoch == 0 || (w.epoch != 0 && epoch != w.epoch)) {
        w.epoch = 0;  // the gradients belong to a state that no longer exists
        return Next(i);
      }
      w.answers[from] = {epoch, step};
      if (from == 0) w.drawn = drawn;
      if (w.answers.size() == servers_.size()) Answered(i);
    });
  }

  void Answered(int i) {
    Worker_& w = worker(i);
    int64_t epoch = w.answers[0].first, step = w.answers[0].second;
    for (const auto& [from, answer] : w.answers) {
      if (answer.first != epoch) return Next(i);
      step = std::min(step, answer.second);
    }
    w.epoch = epoch;
    w.step = step;
    Compute(i);
  }

  void Compute(int i) {
    Worker_& w = worker(i);
    w.awaiting = false;
    if (i > 0 && w.sequence > 30 && Chance(0.05)) return EndOfData(i);
    const auto computes = std::chrono::milliseconds(Between(1, Chance(0.05) ? 200 : 30));
    At(std::max(now_, w.stuck_until) + computes, [this, i, incarnation = w.incarnation] {
      if (worker(i).alive && worker(i).incarnation == incarnation) Next(i);
    });
  }

  void EndOfData(int i) {
    worker(i).ended = true;
    worker(i).alive = false;
    Departs(i);
  }

  // Notifies the coordinator, if it is up, that the worker's connection was closed.
  void Departs(int i) {
    const int64_t incarnation = worker(i).incarnation;
    After(1, 100, [this, i, incarnation] {
      if (!server(0).alive) return;
      Carry(server(0).coordinator->Leave(Id(i), incarnation, worker(i).ended));
    });
  }

  // ---- the chief

  void ChiefChecks() {
    if (!worker(0).alive || filling_) return;
    bool ready = true;
    for (int i = 0; i < servers(); ++i) {
      if (!server(i).alive) return;
      greatest_epoch_ = std::max(greatest_epoch_, server(i).participant->epoch());
      ready = ready && server(i).participant->epoch() == server(0).participant->epoch() &&
              server(i).participant->epoch() != 0;
    }
    if (!ready) return Fill();
    if (!holding_ && Chance(0.2)) {
      holding_ = true;
      Carry(server(0).coordinator->Hold(now_, Id(0)));
    }
  }

  void Fill() {
    filling_ = true;
    const int64_t epoch = ++greatest_epoch_;
    for (int i = 0; i < servers(); ++i) {
      After(1, 60, [this, i, epoch] {
        Server& s = server(i);
        if (!s.alive || !worker(0).alive) return;
        const auto step = static_cast<int64_t>(checkpoint_.size());
        s.lineage = checkpoint_;
        s.used = batches_.UsedBy(s.lineage);
        s.drawn = s.used;
        if (i == 0) GatherOn(s);
        Carry(i, s.participant->Fill(now_, epoch, step, backups(), squares_.groups() > 0));
        if (i == 0) Carry(s.coordinator->Fill(epoch, step, aggregate_, true, squares_.groups()));
      });
    }
    After(70, 70, [this] { filling_ = false; });
  }

  void GatherOn(Server& s) {
    if (!gathers_) return;
    std::vector<Worker> all;
    for (int i = 0; i < workers(); ++i) all.push_back(Id(i));
    s.gather_until = now_ + std::chrono::milliseconds(Between(0, 800));
    s.coordinator->Gather(std::move(all), s.gather_until);
  }

  void Save() {
    const int64_t epoch = server(0).participant->epoch();
    for (int i = 0; i < servers(); ++i) {
      // The chief cannot copy the state unless every server is running and has its part of the
      // state of this epoch.
      if (!server(i).alive || server(i).participant->epoch() != epoch) return EndSave();
      ASSERT_EQ(server(i).lineage, server(0).lineage) << "a save of different steps";
    }
    ASSERT_GE(server(0).lineage.size(), checkpoint_.size()) << "the step went back";
    checkpoint_ = server(0).lineage;
    EndSave();
  }

  void EndSave() {
    After(1, 50, [this] {
      holding_ = false;
      if (server(0).alive) Carry(server(0).coordinator->Release(Id(0)));
    });
  }

  // ---- faults

  void PlanFaults() {
    for (int n = Between(1, 5); n > 0; --n) {
      const auto at = std::chrono::milliseconds(Between(100, 2200));
      if (Chance(0.2)) {
        At(at, [this, i = Between(0, workers() - 1)] { Stick(i); });
      } else if (Chance(0.5)) {
        At(at, [this, i = Between(0, workers() - 1)] { CrashWorker(i); });
      } else {
        At(at, [this, i = Between(0, servers() - 1)] { CrashServer(i); });
      }
    }
  }

  // The worker computes nothing for a while; its connections stay open.
  void Stick(int i) {
    if (i > 0) worker(i).stuck_until = now_ + std::chrono::milliseconds(Between(500, 1800));
  }

  void CrashWorker(int i) {
    if (!worker(i).alive) return;
    worker(i).alive = false;
    if (i == 0) holding_ = false;
    Departs(i);
    // A worker that restarts soon may rejoin the job during the step that its predecessor
    // contributed to.
    const int least = Chance(0.5) ? 1 : 150;
    After(least, least == 1 ? 20 : 700, [this, i] { StartWorker(i); });
  }

  void CrashServer(int i) {
    if (!server(i).alive) return;
    server(i).alive = false;
    if (i == 0) holding_ = false;
    After(1, 700, [this, i] { StartServer(i); });
  }

  int64_t Step() { return server(0).coordinator ? server(0).coordinator->step() : 0; }

  std::mt19937_64 random_;
  Duration now_{0};
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::vector<Server> servers_;
  std::vector<Worker_> workers_;
  int aggregate_ = 1;
  double loss_ = 0, duplication_ = 0;
  std::map<std::pair<int64_t, int64_t>, std::vector<Name>> commits_;
  Lineage checkpoint_;
  int64_t greatest_epoch_ = 0;
  int merges_ = 0, lapses_ = 0;
  SimulatedSquares squares_;
  SimulatedBatches batches_;
  bool gathers_ = false, waited_ = false;
  bool filling_ = false, holding_ = false;
};

TEST(Simulation, KeepsItsPromisesUnderFaults) {
  int merges = 0, lapses = 0, redrawn = 0, waited = 0, measured = 0;
  for (uint64_t seed = 1; seed <= 2000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    simulation.Run();
    merges += simulation.merges();
    lapses += simulation.lapses();
    redrawn += simulation.redrawn();
    measured += simulation.measured();
    waited += simulation.waited() ? 1 : 0;
  }
  EXPECT_GT(lapses, 50);
  EXPECT_GT(merges, 10'000);
  EXPECT_GT(measured, 10'000) << "commits that were applied after the extra round";
  EXPECT_GT(redrawn, 1'000) << "batches that were computed again after a crash";
  EXPECT_GT(waited, 100) << "runs whose tasks gathered before their first step";
}

}  // namespace
}  // namespace tfjob::ps::protocol
