// Runs leader, members and socket intakes of a group on a simulated network, by seeds: streams
// break and lose what was under way, processes crash, pause and restart (the leader's, too), data
// connections are lost unnoticed or opened twice. After the faults, all tasks must train together.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "runtime/base/env.h"
#include "runtime/collectives/leader.h"
#include "runtime/collectives/member.h"
#include "runtime/collectives/simulated_time.h"
#include "runtime/collectives/socket_intake.h"
#include "runtime/state/run_failure.h"
#include "tests/sanitized.h"

namespace tfjob::collectives {
namespace {

constexpr Duration kFaultsEnd{60s}, kEnd{160s}, kLease{10s}, kTick{250ms};

// A stream between a member's process and the leader's. A frame in a direction arrives after all
// frames that were sent before it.
struct Stream {
  int task = 0;
  int64_t member_process = 0, leader_process = 0;
  SessionId session = 0;
  bool cut = false;                // nothing arrives any more
  bool ended[2] = {false, false};  // the member, the leader knows that it is cut
  Duration last[2] = {};           // the time at which the latest frame arrives there
};

struct Process {
  int64_t incarnation = 0;
  int task = 0;
  Duration paused_until{0};
  std::unique_ptr<Leader> leader;  // of task 0 only
  std::unique_ptr<GroupMember> member;
  std::unique_ptr<SocketIntake> intake;
  std::shared_ptr<Stream> stream;  // to the leader; null: none
  bool dialling = false;
  std::set<int> dialling_data;  // ranks
  int64_t step = -1;
  DataChannel channel;  // of the generation that the member is in
};

class GroupSimulation : private SimulatedTime {
 public:
  explicit GroupSimulation(uint64_t seed) : SimulatedTime(seed) {
    const int tasks = static_cast<int>(Number(1, 5));
    for (int task = 0; task < tasks; ++task) {
      tasks_.push_back({.task = StrCat("worker ", task), .address = StrCat("w", task, ":2222")});
      names_.push_back(tasks_.back().task);
      processes_.emplace_back();
      After(Time(0s, 3s), [this, task] { Start(task); });
    }
    const int64_t faults = Number(0, 12);
    for (int64_t i = 0; i < faults; ++i) After(Time(0s, kFaultsEnd), [this] { Fault(); });
    Repeat(kTick, [this] { TickAll(); });
  }

  // Returns "" if all went well.
  std::string Run() {
    RunUntil(kEnd - 30s, [this] { return !wrong_.empty(); });
    if (wrong_.empty()) CheckAllTrain();
    if (Chance(0.5)) {
      failed_ = Chance(0.5);
      Process& leader = *processes_[0];
      leader.leader->Finish(failed_ ? state::RunFailure("the loss is NaN") : OkStatus());
      Pump(leader);
      // One that starts later hears of the end, too.
      if (tasks_.size() > 1) Restart(1, Time(0s, 5s));
      RunUntil(kEnd, [this] { return !wrong_.empty(); });
      if (wrong_.empty()) CheckAllEnded();
    }
    return wrong_;
  }

 private:
  Duration Delay() { return Chance(0.02) ? Time(0ms, 2s) : Time(50us, 20ms); }
  void Expect(bool condition, const std::string& what) {
    if (!condition && wrong_.empty()) wrong_ = StrCat("at ", FormatDuration(now_), ": ", what);
  }

  // ---- processes

  Process* Alive(int64_t incarnation) {
    for (auto& process : processes_) {
      if (process && process->incarnation == incarnation) return process.get();
    }
    return nullptr;
  }
  // Runs the event in the process, once it is not paused; never if it has ended by then.
  void In(int64_t incarnation, std::function<void(Process&)> event) {
    Process* const process = Alive(incarnation);
    if (process == nullptr) return;
    if (process->paused_until > now_) {
      After(process->paused_until - now_, [this, incarnation, event] { In(incarnation, event); });
      return;
    }
    event(*process);
    if (Process* still = Alive(incarnation)) Pump(*still);
  }

  void Start(int task) {
    if (processes_[static_cast<size_t>(task)]) return;
    auto process = std::make_unique<Process>();
    process->incarnation = next_incarnation_++;
    process->task = task;
    Member self = tasks_[static_cast<size_t>(task)];
    self.incarnation = process->incarnation;
    process->member = std::make_unique<GroupMember>(self, tasks_[0]);
    process->intake = std::make_unique<SocketIntake>(names_, self.task);
    if (task == 0) {
      process->leader = std::make_unique<Leader>(tasks_);
      EXPECT_EQ(process->leader->Connect(now_, 0, self.incarnation, kOwnSession), OkStatus());
      process->member->Connected();
    }
    const int64_t incarnation = process->incarnation;
    processes_[static_cast<size_t>(task)] = std::move(process);
    // It joins when it has loaded its data.
    After(Time(0s, 2s),
          [this, incarnation] { In(incarnation, [this](Process& p) { JoinAgain(p); }); });
    In(incarnation, [](Process&) {});
  }

  void JoinAgain(Process& process) {
    process.member->Join({.step = process.step, .agreement = "model: a\n"});
  }

  void Restart(int task, Duration after) {
    std::unique_ptr<Process>& process = processes_[static_cast<size_t>(task)];
    if (process) {
      const bool silent = Chance(0.2);
      const auto dead = std::move(process);
      for (const auto& stream : std::vector(streams_)) {
        if (stream->member_process != dead->incarnation &&
            stream->leader_process != dead->incarnation) {
          continue;
        }
        Cut(stream, silent ? kLease : Duration(0));
      }
      CloseSockets(*dead, silent ? kLease : Duration(0));
    }
    After(after, [this, task] { Start(task); });
  }

  void Fault() {
    const int task = static_cast<int>(Number(0, static_cast<int64_t>(tasks_.size()) - 1));
    std::unique_ptr<Process>& process = processes_[static_cast<size_t>(task)];
    switch (Number(0, 4)) {
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
      default:
        lose_sockets_until_ = now_ + 3s;
    }
  }

  // The others lose a process that is silent for as long as the lease.
  void Pause(Process& process, Duration time) {
    process.paused_until = std::max(process.paused_until, now_ + time);
    if (time < kLease) return;
    for (const auto& stream : std::vector(streams_)) {
      if (stream->member_process == process.incarnation ||
          stream->leader_process == process.incarnation) {
        Cut(stream, kLease);
      }
    }
  }

  void Fail(Process& process, const Status& why) {
    if (process.member->phase() != GroupMember::Phase::kGoing) return;
    In(process.incarnation, [why](Process& p) { p.member->Failed(p.channel.generation, why); });
  }

  // The other members notice later that a process has closed its sockets.
  void CloseSockets(const Process& process, Duration later) {
    const DataChannel channel = process.channel;
    if (channel.generation == 0) return;
    for (const auto& other : processes_) {
      if (!other || other->channel != channel || other->incarnation == process.incarnation) {
        continue;
      }
      const int64_t incarnation = other->incarnation;
      After(later + Delay(), [this, incarnation, channel] {
        In(incarnation, [channel](Process& p) {
          if (p.channel == channel && p.member->phase() == GroupMember::Phase::kGoing) {
            p.member->Failed(channel.generation, Unavailable("a socket was closed"));
          }
        });
      });
    }
  }

  void TickAll() {
    for (auto& process : processes_) {
      if (process && process->paused_until <= now_) Tick(*process);
    }
    CheckGenerations();
  }

  void Tick(Process& process) {
    if (process.leader) process.leader->Tick(now_);
    if (process.task != 0 && process.stream == nullptr && !process.dialling) Dial(process);
    DialData(process);
    CheckWait(process);
    Pump(process);
  }

  // Carries out what the state machines of a process ask for.
  void Pump(Process& process) {
    GroupMember& member = *process.member;
    if (const auto left = member.TakeLeft()) {
      process.intake->End();
      CloseSockets(process, Duration(0));
      process.channel = {};
    }
    if (member.InGeneration() && process.channel.generation != member.formation().generation) {
      const Process* leader = processes_[0].get();
      const int64_t led_by = process.task == 0           ? process.incarnation
                             : process.stream != nullptr ? process.stream->leader_process
                                                         : leader->incarnation;
      process.channel = {led_by, member.formation().generation};
      process.dialling_data.clear();
      process.intake->Begin(process.channel, member.formation().members, member.rank());
    }
    for (auto& [rank, socket] : process.intake->Take()) {
      member.SocketConnected(process.channel.generation, rank);
    }
    const bool goes = member.phase() == GroupMember::Phase::kGoing;
    if (goes && gone_.insert({process.channel, process.incarnation}).second) {
      Expect(told_to_go_.contains(process.channel), "a task goes although it was not told to");
      process.step = std::max<int64_t>(process.step, 0) + 1;
    }
    if (member.phase() == GroupMember::Phase::kIdle &&
        gone_.contains({last_left_[process.incarnation], process.incarnation})) {
      last_left_[process.incarnation] = {};
      JoinAgain(process);
    }
    if (goes) last_left_[process.incarnation] = process.channel;
    SendToLeader(process);
    if (process.leader) SendToMembers(process);
  }

  // ---- streams

  void Dial(Process& process) {
    process.dialling = true;
    const int64_t incarnation = process.incarnation;
    After(Delay() + Delay(), [this, incarnation] {
      Process* const process = Alive(incarnation);
      if (process == nullptr) return;
      process->dialling = false;
      Process* const leader = processes_[0].get();
      if (leader == nullptr || leader->paused_until > now_) {
        process->member->Disconnected(Unavailable("connection refused"));
        return;
      }
      auto stream = std::make_shared<Stream>();
      stream->task = process->task;
      stream->member_process = incarnation;
      stream->leader_process = leader->incarnation;
      stream->session = next_session_++;
      const Status accepted =
          leader->leader->Connect(now_, process->task, incarnation, stream->session);
      Expect(accepted.ok(), StrCat("a live process is refused: ", Message(accepted)));
      streams_.push_back(stream);
      process->stream = stream;
      process->member->Connected();
      Pump(*process);
      Pump(*leader);
    });
  }

  // Breaks a stream. What is under way is lost. Each end hears of it later.
  void Cut(std::shared_ptr<Stream> stream, Duration later) {
    stream->cut = true;
    After(later + Delay(), [this, stream] { EndForMember(stream); });
    After(later + Delay(), [this, stream] { EndForLeader(stream); });
    std::erase(streams_, stream);
  }
  void EndForMember(const std::shared_ptr<Stream>& stream) {
    if (std::exchange(stream->ended[0], true)) return;
    In(stream->member_process, [stream](Process& process) {
      if (process.stream != stream) return;
      process.stream = nullptr;
      process.member->Disconnected(Unavailable("the connection broke"));
    });
  }
  void EndForLeader(const std::shared_ptr<Stream>& stream) {
    if (std::exchange(stream->ended[1], true)) return;
    In(stream->leader_process, [this, stream](Process& process) {
      process.leader->Disconnect(now_, stream->session, "the connection broke");
    });
  }

  // `to`: 0 the member, 1 the leader.
  void Deliver(const std::shared_ptr<Stream>& stream, int to, std::function<void(Process&)> event) {
    stream->last[to] = std::max(stream->last[to], now_ + Delay());
    After(stream->last[to] - now_, [this, stream, to, event = std::move(event)] {
      if (stream->cut) return;
      In(to == 0 ? stream->member_process : stream->leader_process,
         [stream, to, event](Process& process) {
           if (!stream->cut || to == 1) event(process);
         });
    });
  }

  void SendToLeader(Process& process) {
    for (const ToLeader& message : process.member->TakeMessages()) {
      if (process.task == 0) {
        process.leader->OnMessage(now_, kOwnSession, message);
      } else if (process.stream != nullptr) {
        const auto stream = process.stream;
        Deliver(stream, 1, [this, stream, message](Process& leader) {
          leader.leader->OnMessage(now_, stream->session, message);
        });
      }
    }
  }

  void SendToMembers(Process& process) {
    LeaderOutput output = process.leader->Take();
    for (const SessionId session : output.closed) {
      for (const auto& stream : std::vector(streams_)) {
        if (stream->session == session) Cut(stream, Duration(0));
      }
    }
    bool own = false;
    for (const auto& [session, message] : output.messages) {
      Note(process, message);
      if (session == kOwnSession) {
        process.member->OnMessage(message);
        own = true;
        continue;
      }
      for (const auto& stream : streams_) {
        if (stream->session != session) continue;
        Deliver(stream, 0, [stream, message = message](Process& member) {
          if (member.stream == stream) member.member->OnMessage(message);
        });
      }
    }
    if (own) Pump(process);
  }

  void Note(const Process& leader, const ToMember& message) {
    if (const auto* go = std::get_if<GoOrder>(&message)) {
      const DataChannel channel{leader.incarnation, go->generation};
      Expect(!withdrawn_.contains(channel),
             "the leader lets a generation go that it has withdrawn");
      told_to_go_.insert(channel);
    } else if (const auto* withdraw = std::get_if<WithdrawOrder>(&message)) {
      withdrawn_.insert({leader.incarnation, withdraw->generation});
      Expect(!withdraw->why.empty(), "a generation is withdrawn without a reason");
    }
  }

  // ---- data connections

  void DialData(Process& process) {
    GroupMember& member = *process.member;
    if (member.phase() != GroupMember::Phase::kConnecting) return;
    for (const int rank : member.MissingSockets()) {
      if (rank < member.rank() || !process.dialling_data.insert(rank).second) continue;
      const Member target = member.formation().members[static_cast<size_t>(rank)];
      const int64_t incarnation = process.incarnation;
      const DataChannel channel = process.channel;
      After(Delay(), [this, incarnation, target, channel, rank] {
        ArriveAt(target, incarnation, channel, rank);
      });
    }
  }

  void ArriveAt(const Member& target, int64_t caller, const DataChannel& channel, int rank) {
    Process* const from = Alive(caller);
    if (from == nullptr) return;
    Status verdict = Unavailable("connection refused");
    Process* const to = Alive(target.incarnation);
    if (to != nullptr && to->paused_until <= now_) {
      const DataPeer peer{tasks_[static_cast<size_t>(from->task)].task, caller};
      verdict = to->intake->Admit(peer, channel);
      if (verdict.ok() && lose_sockets_until_ <= now_) {
        to->intake->Accept(peer, channel, wire::UniqueFd());
        Expect(!to->intake->Admit(peer, channel).ok(), "two sockets for one place");
        Pump(*to);
      }
    }
    In(caller, [channel, rank, verdict](Process& process) {
      process.dialling_data.erase(rank);
      if (process.channel != channel) return;
      if (verdict.ok()) {
        process.member->SocketConnected(channel.generation, rank);
      } else {
        process.member->SocketFailed(channel.generation, rank, verdict);
      }
    });
  }

  // ---- what must hold

  // Two generations whose members are all in them cannot exist at the same time.
  void CheckGenerations() {
    std::map<DataChannel, size_t> going;
    std::map<DataChannel, size_t> size;
    for (const auto& process : processes_) {
      if (!process || process->member->phase() != GroupMember::Phase::kGoing) continue;
      ++going[process->channel];
      size[process->channel] = process->member->formation().members.size();
    }
    int complete = 0;
    for (const auto& [channel, count] : going) complete += count == size[channel] ? 1 : 0;
    Expect(complete <= 1, "two generations train at the same time");
    if (now_ <= kFaultsEnd + 2 * kLease) return;
    Expect(going.size() <= 1, "a task still goes in an earlier generation");
  }

  void CheckWait(const Process& process) {
    const GroupMember::Phase phase = process.member->phase();
    if (phase == GroupMember::Phase::kIdle || phase == GroupMember::Phase::kGoing ||
        phase == GroupMember::Phase::kEnded) {
      return;
    }
    const AwaitedNotice awaited = process.member->Awaited();
    Expect(!awaited.peers.empty() && !awaited.text.empty(), "a wait names no task");
  }

  void CheckAllTrain() {
    for (const auto& process : processes_) {
      Expect(process != nullptr, "a process is missing");
      if (process == nullptr) return;
      Expect(
          process->member->phase() == GroupMember::Phase::kGoing,
          StrCat(tasks_[static_cast<size_t>(process->task)].task,
                 " does not go in the end, in phase ", static_cast<int>(process->member->phase()),
                 ": ", process->member->Awaited().text, Message(process->member->end())));
      Expect(process->channel == processes_[0]->channel, "tasks go in several generations");
      Expect(process->member->formation().members.size() == tasks_.size(), "a task is left out");
    }
  }

  void CheckAllEnded() {
    for (const auto& process : processes_) {
      const Status& end = process->member->end();
      Expect(process->member->phase() == GroupMember::Phase::kEnded,
             "a task does not hear of the end");
      Expect(failed_ ? state::IsRunFailure(end) : absl::IsCancelled(end),
             StrCat("a task ends with ", end.ToString()));
    }
    Expect(processes_[0]->leader->EndIsKnown(),
           "the leader waits for a task that knows of the end");
  }

  static constexpr SessionId kOwnSession = 1;
  int64_t next_incarnation_ = 1000;
  SessionId next_session_ = 2;
  std::vector<Member> tasks_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Process>> processes_;  // by task; null: none runs
  std::vector<std::shared_ptr<Stream>> streams_;     // not cut
  Duration lose_sockets_until_{0};
  std::set<std::pair<DataChannel, int64_t>> gone_;  // generation and process
  std::map<int64_t, DataChannel> last_left_;        // by process
  std::set<DataChannel> told_to_go_, withdrawn_;
  bool failed_ = false;
  std::string wrong_;
};

// TFJOB_SEED=n runs only the simulation with seed n.
TEST(GroupSimulation, EverySeedEndsWithAllTasksInOneGeneration) {
  const std::string one = GetEnv("TFJOB_SEED").value_or("");
  if (!one.empty()) {
    EXPECT_EQ(GroupSimulation(std::stoull(one)).Run(), "");
    return;
  }
  constexpr uint64_t kSeeds = kSanitized ? 100 : 2000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ASSERT_EQ(GroupSimulation(seed).Run(), "") << "TFJOB_SEED=" << seed;
  }
}

}  // namespace
}  // namespace tfjob::collectives
