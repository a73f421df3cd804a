// Runs the processes of a group on a simulated network: the leader, members and socket intakes. Can
// break streams, which then lose the messages in transit; crash, pause, replace and wake processes;
// and partition the network. The test decides when this happens.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/membership/leader_search.h"
#include "runtime/collectives/membership/member.h"
#include "runtime/collectives/membership/simulated_process.h"
#include "runtime/collectives/membership/simulated_time.h"
#include "runtime/collectives/membership/socket_intake.h"

namespace tfjob::collectives {

class SimulatedGroup : protected SimulatedTime {
 protected:
  static constexpr Duration kEnd{200s}, kLease{10s};

  explicit SimulatedGroup(uint64_t seed) : SimulatedTime(seed) {}

  Duration Delay() { return Chance(0.02) ? Time(0ms, 2s) : Time(50us, 20ms); }
  void Expect(bool condition, const std::string& what) {
    if (!condition && wrong_.empty()) wrong_ = StrCat("at ", FormatDuration(now_), ": ", what);
  }

  // ---- processes

  Process* Alive(int64_t incarnation) {
    for (auto& process : processes_) {
      if (process && process->incarnation == incarnation) return process.get();
    }
    for (auto& process : replaced_) {
      if (process->incarnation == incarnation) return process.get();
    }
    return nullptr;
  }
  bool IsReplaced(int64_t incarnation) const {
    return std::ranges::any_of(replaced_,
                               [&](const auto& p) { return p->incarnation == incarnation; });
  }
  // Runs the event in the process as soon as the process is not paused. Does not run it if the
  // process has exited by then.
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
    if (processes_[static_cast<size_t>(task)] || task >= size_) return;
    auto process = std::make_unique<Process>();
    process->incarnation = next_incarnation_++;
    process->task = task;
    // A restarted process has the TF_CONFIG of its pod, which may list an earlier number of tasks.
    int& listed = listed_[static_cast<size_t>(task)];
    if (listed == 0 || Chance(0.3)) listed = std::max(size_, task + 1);
    process->listed = listed;
    for (int known = 0; known < listed; ++known) process->known.insert(known);
    process->begins_again = !gone_.empty();
    Member self = tasks_[static_cast<size_t>(task)];
    self.incarnation = process->incarnation;
    process->member = std::make_unique<GroupMember>(self, tasks_[0], rules_.shrinks);
    process->intake = std::make_unique<SocketIntake>(names_, self.task);
    if (task == 0) StartLeading(*process);
    const int64_t incarnation = process->incarnation;
    processes_[static_cast<size_t>(task)] = std::move(process);
    // The process joins once it has loaded its data.
    After(Time(0s, 2s),
          [this, incarnation] { In(incarnation, [this](Process& p) { JoinAgain(p); }); });
    In(incarnation, [](Process&) {});
  }

  TaskView ViewOf(const Process& process) const {
    return {.task = process.task,
            .shrinks = rules_.shrinks,
            .leads = process.leader != nullptr,
            .occupied = process.occupied,
            .first_follows =
                process.leader != nullptr && process.task != 0 && process.leader->IsConnected(0),
            .rests = now_ < process.rests_until,
            .call_due = rules_.elastic() && now_ >= process.next_call,
            .member = process.member.get()};
  }
  void StartLeading(Process& process) {
    LeaderRules rules = rules_;
    rules.listed_tasks = process.listed;
    if (rules.elastic()) rules.first_generation = 1 + now_ / Duration(1s);
    process.leader = std::make_unique<Leader>(tasks_, rules, process.task);
    EXPECT_EQ(process.leader->Connect(now_, process.task, process.incarnation, kOwnSession),
              OkStatus());
    process.member->Connected(tasks_[static_cast<size_t>(process.task)]);
  }
  void StopLeading(Process& process) {
    for (const auto& stream : std::vector(streams_)) {
      if (stream->leader_process == process.incarnation) Cut(stream, Duration(0));
    }
    process.leader.reset();
    process.member->Disconnected(Unavailable("another task leads"));
  }

  // Returns whether a message can reach one task from the other.
  bool Reaches(int from, int to) const {
    return now_ >= divided_until_ ||
           part_[static_cast<size_t>(from)] == part_[static_cast<size_t>(to)];
  }
  // Partitions the network into two parts for some time.
  void Divide(Duration time) {
    part_.assign(tasks_.size(), 0);
    for (int& part : part_) part = Chance(0.5) ? 1 : 0;
    divided_until_ = now_ + time;
    const Duration later = Chance(0.5) ? kLease : Duration(0);
    for (const auto& stream : std::vector(streams_)) {
      const Process* const leader = Alive(stream->leader_process);
      if (leader != nullptr && !Reaches(stream->task, leader->task)) Cut(stream, later);
    }
    for (const auto& process : processes_) {
      if (!process || process->channel.generation == 0) continue;
      const auto is_cut_off = [&](const Member& member) {
        const Process* const other = Alive(member.incarnation);
        return other == nullptr || !Reaches(process->task, other->task);
      };
      if (!std::ranges::any_of(process->member->formation().members, is_cut_off)) continue;
      After(later + Delay(),
            [this, incarnation = process->incarnation, channel = process->channel] {
              In(incarnation, [channel](Process& p) {
                if (p.channel == channel) {
                  p.member->Failed(channel.generation, Unavailable("a socket broke"));
                }
              });
            });
    }
  }

  void JoinAgain(Process& process) {
    process.trains = true;
    process.member->Join({.step = process.variables.step,
                          .state_generation = process.variables.generation,
                          .agreement = "model: a\n",
                          .begins_again = process.begins_again,
                          .claim = process.variables.claim});
  }

  // If `wakes` is true, the process stays alive, cut off from the others, and wakes up after
  // another process has taken its place.
  void Restart(int task, Duration after, bool wakes = false) {
    std::unique_ptr<Process>& process = processes_[static_cast<size_t>(task)];
    if (process) {
      const Duration later = wakes || Chance(0.2) ? kLease : Duration(0);
      for (const auto& stream : std::vector(streams_)) {
        if (stream->member_process == process->incarnation ||
            stream->leader_process == process->incarnation) {
          Cut(stream, later);
        }
      }
      CloseSockets(*process, later);
      if (wakes) {
        process->paused_until = now_ + later + after + Time(0s, 20s);
        replaced_.push_back(std::move(process));
      }
      process.reset();
    }
    After(after, [this, task] { Start(task); });
  }

  // The others consider a process lost if it is silent for the length of the lease.
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

  // Closes the sockets of a process. The other members notice this only after `later`.
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

  void Tick(Process& process) {
    if (process.leader) process.leader->Tick(now_);
    const bool ended = process.member->phase() == GroupMember::Phase::kEnded && !finished_;
    if (Searches(ViewOf(process)) && process.stream == nullptr && !process.dialling && !ended) {
      process.dialling = true;
      Dial(process, TasksToAsk(ViewOf(process), static_cast<int>(tasks_.size())), 0);
    }
    DialData(process);
    CheckWait(process);
    Pump(process);
  }

  // Carries out the requests of a process's state machines.
  void Pump(Process& process) {
    GroupMember& member = *process.member;
    if (const auto left = member.TakeLeft()) {
      process.intake->End();
      CloseSockets(process, Duration(0));
      process.channel = {};
    }
    if (member.InGeneration() && process.channel.generation != member.formation().generation) {
      const int64_t led_by =
          process.leader != nullptr ? process.incarnation : process.stream->leader_process;
      process.channel = {led_by, member.formation().generation};
      process.dialling_data.clear();
      process.intake->Begin(process.channel, member.formation().members, member.rank());
      for (const Member& other : member.formation().members) {
        process.known.insert(
            static_cast<int>(std::ranges::find(names_, other.task) - names_.begin()));
      }
    }
    for (auto& [rank, socket] : process.intake->Take()) {
      member.SocketConnected(process.channel.generation, rank);
    }
    const bool goes = member.phase() == GroupMember::Phase::kGoing;
    if (goes && gone_.insert({process.channel, process.incarnation}).second) {
      Expect(told_to_go_.contains(process.channel), "a task goes although it was not told to");
    }
    if (member.phase() == GroupMember::Phase::kIdle && process.trains) JoinAgain(process);
    if (member.phase() == GroupMember::Phase::kEnded && !failed_ && !finished_) {
      // A new leader might not know that this process replaced the one that has woken up.
      Expect(IsReplaced(process.incarnation) || woke_up_, "a live process is refused");
      const int64_t incarnation = process.incarnation;
      const int task = process.task;
      After(0s, [this, incarnation, task] {
        const auto& ended = processes_[static_cast<size_t>(task)];
        if (ended && ended->incarnation == incarnation) Restart(task, 1s);
      });
    }
    if (member.ClaimToFind() != process.looks_for) FindClaim(process);
    SendToLeader(process);
    if (process.leader) SendToMembers(process);
  }
  virtual void FindClaim(Process& process) = 0;

  // ---- streams

  // Asks the tasks in order, starting at this index, until one accepts the process.
  void Dial(Process& process, const std::vector<int>& tasks, size_t index) {
    const int64_t incarnation = process.incarnation;
    After(Delay() + Delay(), [this, incarnation, tasks, index] {
      In(incarnation, [this, tasks, index](Process& p) { Ask(p, tasks, index); });
    });
  }
  void Ask(Process& process, const std::vector<int>& tasks, size_t index) {
    while (index < tasks.size() && !process.known.contains(tasks[index])) ++index;
    if (index == tasks.size()) {
      process.dialling = false;
      process.next_call = now_ + kCallFirst;
      if (MayLead(ViewOf(process))) StartLeading(process);
      return;
    }
    const Status accepted = Follow(process, tasks[index]);
    if (absl::IsAlreadyExists(accepted)) process.occupied = tasks[index];
    if (accepted.ok()) process.occupied = -1;
    process.dialling = !accepted.ok() && !absl::IsPermissionDenied(accepted);
    if (accepted.ok()) return;
    if (absl::IsPermissionDenied(accepted)) {
      if (process.leader != nullptr) StopLeading(process);
      return process.member->Refused(accepted);
    }
    if (process.leader == nullptr) process.member->Disconnected(accepted);
    Dial(process, tasks, index + 1);
  }
  Status Follow(Process& process, int task) {
    Process* const leader = processes_[static_cast<size_t>(task)].get();
    if (leader == nullptr || leader->paused_until > now_ || !Reaches(process.task, task) ||
        !Searches(ViewOf(process))) {
      return Unavailable("connection refused");
    }
    const Member& name = tasks_[static_cast<size_t>(task)];
    RETURN_IF_ERROR(MayFollow(ViewOf(*leader), name.task, process.task));
    if (process.member->WasReplaced(name.task, leader->incarnation)) {
      return Unavailable("the process was replaced");
    }
    RETURN_IF_ERROR(leader->leader->Admit(process.task, process.incarnation));
    if (process.leader != nullptr) StopLeading(process);
    auto stream = std::make_shared<Stream>();
    stream->task = process.task;
    stream->member_process = process.incarnation;
    stream->leader_process = leader->incarnation;
    stream->session = next_session_++;
    RETURN_IF_ERROR(
        leader->leader->Connect(now_, process.task, process.incarnation, stream->session));
    woke_up_ = woke_up_ || IsReplaced(process.incarnation);
    streams_.push_back(stream);
    process.stream = stream;
    process.member->Connected(name);
    Pump(*leader);
    return OkStatus();
  }

  // Breaks a stream. Messages in transit are lost. Each end notices the break only after `later`.
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
      if (process.leader == nullptr) return;
      process.leader->Disconnect(now_, stream->session, "the connection broke");
    });
  }

  // Runs `event` in the process at end `to` of the stream (0: the member, 1: the leader).
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
      if (process.leader != nullptr) {
        process.leader->OnMessage(now_, kOwnSession, message);
      } else if (process.stream != nullptr) {
        const auto stream = process.stream;
        Deliver(stream, 1, [this, stream, message](Process& leader) {
          if (leader.leader == nullptr) return;
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
    if (process.leader->ShouldHandBack()) {
      process.rests_until = now_ + kHandBack;
      return StopLeading(process);
    }
    if (process.leader->ShouldStepAside()) {
      process.pause = rules_.NextPause(process.pause);
      process.rests_until = now_ + process.pause;
      return StopLeading(process);
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
    const bool blocked =
        to != nullptr && now_ < blocked_until_ && from->task == 0 && to->task == blocked_;
    if (to != nullptr && to->paused_until <= now_ && Reaches(from->task, to->task) && !blocked) {
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

  void CheckWait(const Process& process) {
    const GroupMember::Phase phase = process.member->phase();
    if (phase == GroupMember::Phase::kIdle || phase == GroupMember::Phase::kGoing ||
        phase == GroupMember::Phase::kEnded) {
      return;
    }
    const AwaitedNotice awaited = process.member->Awaited();
    Expect(!awaited.peers.empty() && !awaited.text.empty(), "a wait names no task");
  }

  static constexpr SessionId kOwnSession = 1;
  int64_t next_incarnation_ = 1000;
  SessionId next_session_ = 2;
  std::vector<Member> tasks_;
  int size_ = 0;             // the number of tasks that should run
  std::vector<int> listed_;  // by task: the number of tasks in its TF_CONFIG
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Process>> processes_;  // by task; null: none runs
  std::vector<std::shared_ptr<Stream>> streams_;     // not cut
  Duration lose_sockets_until_{0};
  Duration divided_until_{0};
  // The first task and the task `blocked_` cannot open data connections to each other before this
  // time.
  Duration blocked_until_{0};
  int blocked_ = 0;
  std::vector<int> part_;                           // of the network, by task, while it is divided
  std::set<std::pair<DataChannel, int64_t>> gone_;  // which process has begun which generation
  LeaderRules rules_;
  std::vector<std::unique_ptr<Process>> replaced_;  // alive, but others took their places
  bool woke_up_ = false;                            // a replaced process has reached a leader
  std::set<DataChannel> told_to_go_, withdrawn_;
  bool failed_ = false, finished_ = false;
  std::string wrong_;
};

}  // namespace tfjob::collectives
