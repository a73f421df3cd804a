// Decides who belongs to a group's generation. Collects the tasks that join, and forms a generation
// when all expected tasks have joined. When all of the generation's members are connected to each
// other, orders the generation to begin. When a member is lost, withdraws the generation; its tasks
// must then join again. No task is therefore in two generations.
//
// The first generation of a job contains all tasks that have not left. If the rules allow the group
// to shrink, tasks may be missing from later generations, provided that a majority of the members
// of the last generation have joined (quorum.h). A leader learns of earlier generations from the
// tasks that join, so any task may lead after the previous leader was lost. A task that returns
// waits until the members join again. If the members cannot connect to this task, they continue
// without it, and try again after a pause.
//
// If the rules make the group elastic, tasks that are not listed initially may also join, and a
// generation needs only a minimum number of tasks. The group does not wait for a task that has
// departed.
//
// Pure: the caller passes in every event and the time, and sends the messages that Take returns.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/collectives/membership/culprit.h"
#include "runtime/collectives/membership/membership_messages.h"
#include "runtime/collectives/membership/quorum.h"

namespace tfjob::collectives {

struct LeaderRules {
  // If the members of a generation have not all connected to each other within this time, the
  // generation is withdrawn and they start over. Otherwise, a member that still has a socket that
  // its peer has lost could block the group forever.
  Duration connect_patience{20s};
  // A report of a wait counts only for this long, because members repeat their reports while they
  // wait.
  Duration report_lasts{6s};
  // How often a notice about a task in an announced phase is updated.
  Duration renew_notice{10s};
  // Allows the group to continue without members that were lost or whose process exits. If false,
  // the group waits for their replacements.
  bool shrinks = false;
  // How long a group that may shrink waits for a member to connect again after its session was
  // lost.
  Duration lost_patience{1s};
  // How long a leader waits, after its own task has joined, for members of the last generation that
  // have never connected to it.
  Duration gather_patience{3s};
  // How long a group that may shrink continues without a returning task that the other members
  // could not connect to. The pause doubles after each further failure, up to longest_pause.
  Duration pause_after_failure{20s};
  Duration longest_pause{5min};
  // If not 0, the group is elastic, and waits while fewer tasks than this have joined. If 0, the
  // number of tasks never changes. An elastic group must be allowed to shrink.
  int least_tasks = 0;
  // The first generation of an elastic group waits for this many tasks, counted from the first. It
  // waits for each of them for at most start_patience after the leader's task has joined or the
  // awaited task was lost, whichever is later.
  int listed_tasks = 0;
  Duration start_patience{30s};
  // If an elastic group of this job has trained before (Joining::begins_again), and the tasks that
  // have joined are not a majority of it, that group may still be running, led by a task that is
  // not listed. The first generation then waits for this long, so that such a leader can notice the
  // loss of this task and call it (leader_search.h).
  Duration call_patience{20s};
  // The lowest number of the first generation of a group that continues no earlier one. If an
  // elastic group starts over while processes of an earlier group are cut off, its generations must
  // have higher numbers than theirs, so that its state counts as the newer one.
  int64_t first_generation = 1;
  bool elastic() const { return least_tasks > 0; }
  Duration NextPause(Duration pause) const {
    return std::clamp(2 * pause, pause_after_failure, longest_pause);
  }
};

// Identifies a stream from a member to the leader. The caller chooses the numbers, and never reuses
// one.
using SessionId = uint64_t;

struct LeaderOutput {
  std::vector<std::pair<SessionId, ToMember>> messages;
  std::vector<SessionId> closed;  // to close, because their processes or sessions were replaced
};

class Leader {
 public:
  // `tasks` contains the names and addresses of all tasks that may train; tasks[self] is the
  // leader's. The addresses of an elastic group's tasks beyond LeaderRules::listed_tasks may become
  // known only when these tasks join.
  explicit Leader(std::vector<Member> tasks, LeaderRules rules = {}, int self = 0);

  // Decides whether this process may open a session. Returns PermissionDenied if the process has
  // been replaced by another process of its task. Returns AlreadyExists if another process of its
  // task has a session and no generation has begun, because a new leader does not know which of the
  // two processes replaced the other.
  Status Admit(int task, int64_t incarnation) const;
  // Records that a task has opened a session, which replaces its earlier session. Propagates errors
  // from Admit.
  Status Connect(Duration now, int task, int64_t incarnation, SessionId session);
  // Records that a session has ended. Disconnect and OnMessage have no effect for sessions that
  // were replaced or closed.
  void Disconnect(Duration now, SessionId session, const std::string& why);
  void OnMessage(Duration now, SessionId session, const ToLeader& message);
  // Call several times per second.
  void Tick(Duration now);
  // Withdraws the current generation, and forms no other until the leader's task joins again. Keeps
  // the sessions. Called if the task has been asked to exit and is still saving its state.
  void HoldBack(Duration now);
  // Records the group's claim (Joining). A task without a state must have found the latest claim
  // before it may take part. The leader also learns of claims from tasks with a state that join.
  void NoteClaim(int64_t claim) { claim_ = std::max(claim_, claim); }
  // Ends the job for all tasks, including those that connect later. `failure` is OK or
  // state::RunFailure.
  void Finish(const Status& failure);

  LeaderOutput Take() { return std::exchange(output_, {}); }

  // Returns whether every task that must learn of the job's end has learned of it. These are the
  // tasks, other than the leader's own, that are connected, and those that were members of the
  // latest generation and will connect again.
  bool EndIsKnown() const;
  // Returns whether a generation is running and another task is waiting to join the next one. A
  // task that is in a pause (LeaderRules) does not count.
  bool TaskWaits(Duration now) const;
  // Returns whether the leader should let the first task lead. This is the case if the first task
  // is not the leader's own task and has joined, and the next generation could form now.
  bool ShouldHandBack() const { return hands_back_; }
  // Returns whether the leader should let another task lead for a while. This is the case if it has
  // rejoined after being lost, and the members of the last generation could not connect to it.
  bool ShouldStepAside() const { return steps_aside_; }
  // Returns whether, in each of these generations, which this task remembers, a majority of the
  // members have stayed connected since the latest generation began. As long as this is the case,
  // no other leader can have formed a generation. If `is_heard` is given, a member counts only if
  // is_heard(session) reports that it has recently sent data.
  bool HasMajority(const std::vector<PastGeneration>& past,
                   const std::function<bool(SessionId)>& is_heard = nullptr) const;
  // Returns whether a generation is running.
  bool goes() const { return phase_ == Phase::kGoing; }
  // Returns the latest notice sent to the members, which names the tasks that the group waits for.
  const AwaitedNotice& awaited() const { return awaited_; }
  const StuckNotice& stuck() const { return stuck_; }
  int64_t generation() const { return number_; }
  // Returns whether the task has an open session.
  bool IsConnected(int task) const { return seats_[static_cast<size_t>(task)].session != 0; }
  bool HasLeft(int task) const { return seats_[static_cast<size_t>(task)].left; }

 private:
  enum class Phase { kGathering, kConnecting, kGoing };
  struct Seat {
    Member member;
    SessionId session = 0;       // 0: none
    std::set<int64_t> replaced;  // earlier incarnations
    // The known processes of the task. Once a generation begins, all of them except the one that
    // takes part count as replaced.
    std::set<int64_t> rivals;
    std::optional<JoinRequest> join;
    bool left = false;
    bool departed = false;  // its process has announced that it exits
    // The task was a member of the latest generation that has begun, and has not left or departed
    // since then.
    bool was_member = false;
    bool seen = false;  // it has had a session
    Duration lost{0};   // when the session was lost, or when the wait for the first one started
    // The task was a member of the latest generation, and has kept this session since that
    // generation began.
    bool stays = false;
    int64_t known = 0;  // the latest generation that its process can remember
    // The processes that have left or departed, with the latest generation that each remembered.
    std::map<int64_t, int64_t> resigned;
    // The other tasks could not connect to this task, and continue without it until `paused_until`,
    // for the length of `pause`.
    Duration pause{0}, paused_until{0};
    int rank = -1;  // its rank in the generation; -1: not a member
    bool ready = false;
    // It is not one of the members of the last generation that have joined, so that the group may
    // try again without it.
    bool returns = false;
    std::set<int> unreachable;  // the ranks that it could not connect to
    std::optional<RankWait> wait;
    Duration reported{0};
    // The phase that the task has announced, and when the task reported it last.
    struct Busy {
      state::WorkPhase phase = state::WorkPhase::kNone;
      Duration began{0}, until{0}, reported{0};
    };
    std::optional<Busy> busy;
  };

  Seat* SeatOf(SessionId session);
  void Send(const Seat& seat, ToMember message);
  void SendToAll(const ToMember& message);
  static void NoteReplaced(Seat& seat, int64_t incarnation);
  static void NoteRivals(Seat& seat);
  std::vector<KnownProcess> Replaced() const;
  // Records a member's report about a process that it knew before this leader started.
  void Hear(Duration now, const KnownProcess& process);
  void OnJoin(Duration now, Seat& seat, const JoinRequest& join);
  void OnReady(Seat& seat, int64_t generation);
  void OnWait(Duration now, Seat& seat, const WaitReport& wait);
  void OnUnreachable(Seat& seat, const UnreachableReport& report);
  static void OnPhase(Duration now, Seat& seat, const PhaseReport& report);
  void OnLeave(Seat& seat, const LeaveNotice& notice);
  void OnDepart(Seat& seat, const DepartNotice& notice);
  // Ends the seat's session.
  void Lose(Duration now, Seat& seat, const std::string& why);
  // `departs`: see WithdrawOrder.
  void Withdraw(const std::string& why, bool departs = false);
  // Takes every action whose conditions are now met.
  void Proceed(Duration now);
  void RefuseMisfits();
  // Makes the tasks that have joined without a state find the claim first. Until then, they have
  // not joined.
  void LetFindClaim();
  void Form(Duration now);
  // Withdraws a generation whose members have not connected in time.
  void GiveUpConnecting(Duration now);
  // Returns the seats without which the other members of a generation that is the first of its
  // group may be able to connect.
  std::vector<size_t> Culprits() const;
  // Returns whether the tasks that have joined may continue without the other tasks.
  bool MayShrink() const { return rules_.shrinks && Remembered().may_shrink; }
  // Returns whether the task's current process is a member of a generation that the joined tasks
  // remember. If the process has not connected yet, returns whether it may be one.
  bool IsMember(const Seat& seat) const;
  // Returns whether the task will belong to the generation that forms next.
  bool TakesPart(Duration now, const Seat& seat, bool may_shrink) const {
    const bool pauses = now < seat.paused_until;
    return seat.join && !(pauses && (may_shrink || IsNewcomer(seat)));
  }
  // Returns whether an elastic group need not wait for this task, even if the tasks that have
  // joined are not a majority: they do not remember a generation of which it was a member.
  bool IsNewcomer(const Seat& seat) const {
    return rules_.elastic() && Remembered().members[IndexOf(seat)] == 0;
  }
  size_t IndexOf(const Seat& seat) const { return static_cast<size_t>(&seat - seats_.data()); }
  // Returns whether a task that has joined has the state that this generation began with, or a
  // newer state.
  bool HasStateOf(const PastGeneration& generation) const;
  // Returns whether the next generation waits for this task.
  bool IsAwaited(Duration now, const Seat& seat, bool may_shrink) const;
  // Returns whether the task is one of LeaderRules::listed_tasks.
  bool IsListed(const Seat& seat) const { return &seat - seats_.data() < rules_.listed_tasks; }
  // Returns whether the first generation of an elastic group waits for this task.
  bool IsAwaitedAtStart(Duration now, const Seat& seat) const;
  // Returns whether the first generation of an elastic group waits for a call (call_patience).
  bool AwaitsCall(Duration now) const;
  // Returns the number of tasks that must still join an elastic group before a generation can form.
  int MoreTasks(Duration now) const;
  std::vector<const Seat*> Missing(Duration now) const;
  void NoteMissing(Duration now);
  void NoteStuck(Duration now);
  // Describes a task and the phase that it has announced: "worker 1 (h:1), which has been saving a
  // checkpoint for 12s,". If the task has announced no phase, the relative clause is missing.
  static state::WorkPhase PhaseOf(const Seat& seat) {
    return seat.busy ? seat.busy->phase : state::WorkPhase::kNone;
  }
  static std::string DescribeWork(Duration now, const Seat& seat);
  // Returns the members of the running generation that are in an announced phase, if another member
  // has already joined the next generation.
  std::vector<const Seat*> BusyMembers() const;
  // Records that a process of the seat no longer counts in this generation and earlier ones.
  void NoteResigned(Seat& seat, int64_t incarnation, int64_t generation);
  bool HasResigned(const Participant& process, int64_t generation) const;
  const Seat* SeatOf(const std::string& task) const;
  // The combined memory of the tasks that have joined.
  struct Memory {
    bool may_shrink;               // they may continue without the other tasks
    std::vector<int64_t> members;  // by task: its process in these generations; 0: none
  };
  const Memory& Remembered() const;

  const LeaderRules rules_;
  const size_t self_;
  std::vector<Seat> seats_;                // by task
  std::map<std::string, size_t> indices_;  // of the seats, by the task's name
  mutable std::optional<Memory> memory_;   // reset when the set of joined tasks changes
  bool hands_back_ = false;
  bool steps_aside_ = false;
  Phase phase_ = Phase::kGathering;
  bool has_joined_ = false;               // the leader's task has joined
  Duration joined_{0};                    // when it joined for the first time
  bool has_begun_ = false;                // a generation has begun
  int64_t number_ = 0;                    // the number of the latest generation
  int64_t heard_ = 0;                     // the highest number that any member knows of
  std::optional<std::string> agreement_;  // of the leader's task, once it has joined
  int64_t claim_ = 0;                     // the latest claim that this leader knows of; 0: none
  std::vector<size_t> ranks_;             // the seats of the generation, by rank
  Duration formed_{0};
  bool continues_ = false;  // the generation continues an earlier one (Memory::may_shrink)
  std::optional<EndOrder> end_;
  AwaitedNotice awaited_;
  StuckNotice stuck_;
  std::string stuck_cause_;    // everything in stuck_ except the durations
  Duration stuck_noted_{0};    // when stuck_ was sent
  Duration awaited_noted_{0};  // when awaited_ was sent
  std::string awaited_cause_;  // everything in awaited_ except the durations
  LeaderOutput output_;
};

// Returns "" if `left` and `right` are equal. Otherwise, describes the first line that differs.
std::string FirstDifference(const std::string& left_name, const std::string& left,
                            const std::string& right_name, const std::string& right);

}  // namespace tfjob::collectives
