// Implements a task's part in a group. The task joins, connects to the other members of the
// generation that the leader forms, and begins when the leader orders it to. If the generation is
// withdrawn, or the leader is lost, the task leaves the generation and must join again.
//
// Pure: the caller passes in every event, and carries out the results of the functions. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/collectives/membership/membership_messages.h"
#include "runtime/collectives/membership/quorum.h"

namespace tfjob::collectives {

class GroupMember {
 public:
  enum class Phase {
    kIdle,        // is in no generation, and has not asked to join one
    kJoining,     // has asked the leader to join, or will ask once it is connected
    kConnecting,  // connects to the other members of formation()
    kReady,       // is connected to all other members; awaits the leader's order
    kGoing,       // the generation has begun
    kEnded,       // see end()
  };

  // `self` contains the task's name, address and incarnation; `leader` contains the name and
  // address of the task that usually leads. If `shrinks`, the leader learns which generations this
  // process remembers, because the group may continue without some tasks.
  GroupMember(Member self, Member leader, bool shrinks = false);

  // ---- requests of the task

  // Leaves the generation, if the task is in one, and joins the next generation. Has no effect in
  // the phase kEnded.
  void Join(const Joining& joining);
  // Announces that the task takes no further steps.
  void Leave();
  // Announces that the process exits, and that another one will continue in its place. The task is
  // in no generation until the next Join.
  void Depart();
  // Asks to join again, with this claim (ClaimToFind), which the task has found.
  void FoundClaim(int64_t claim);
  // Records that these processes have announced that they leave or depart. The leader of the next
  // generation learns of this from the next request to join.
  void NoteResigned(const std::vector<ResignedProcess>& processes);
  // Leaves the generation, or withdraws the request to join, without an announcement. Called if
  // this task leads, has been asked to exit, and is still saving its state. The caller notifies the
  // leader (Leader::HoldBack).
  void HoldBack();
  // Asks the leader to end the job with this error (state::RunFailure). The phase becomes kEnded
  // once the leader has done so.
  void FailRun(const Status& failure);

  // ---- events

  // A session with the leader has started. `leader` is the task that leads, if the leader may
  // change.
  void Connected(const std::optional<Member>& leader = std::nullopt);
  // There is no session: the session has ended, or an attempt to open one has failed.
  void Disconnected(const Status& why);
  // The leader does not accept this task.
  void Refused(const Status& why);
  void OnMessage(const ToMember& message);
  // A socket to this rank of the generation is now connected.
  void SocketConnected(int64_t generation, int rank);
  // An attempt to connect to this rank has failed, and will be repeated. The leader learns of the
  // first failure.
  void SocketFailed(int64_t generation, int rank, const Status& why);
  // Reports to the leader why the generation cannot continue. The leader withdraws the generation,
  // with the first reason that any member has reported. `departs`: see FailureReport.
  void ReportFailure(int64_t generation, const Status& why, bool departs = false);
  // Calls ReportFailure, and leaves the generation at once.
  void Failed(int64_t generation, const Status& why);
  // Reports which rank this task has been waiting for in an operation of its generation.
  void Report(const WaitReport& report);

  // Reports the phase in which this task works on something other than a step.
  void Report(const PhaseReport& report);

  // All members of the generation have exchanged data.
  void Shared(int64_t generation);

  // ---- state

  Phase phase() const { return phase_; }
  // Returns whether the phase is kConnecting, kReady or kGoing.
  bool InGeneration() const {
    return phase_ == Phase::kConnecting || phase_ == Phase::kReady || phase_ == Phase::kGoing;
  }
  // Returns the generation. Valid only while InGeneration().
  const FormOrder& formation() const { return formation_; }
  int rank() const { return rank_; }
  // Returns the ranks that this member has no socket to yet.
  std::vector<int> MissingSockets() const;
  // Returns the error that the task exits with; Cancelled if the job has ended.
  const Status& end() const { return end_; }
  bool connected() const { return connected_; }
  // Returns the claim (Joining) that this task, which has asked to join without a state, must find
  // in its folder before the leader lets it take part; 0: none.
  int64_t ClaimToFind() const { return phase_ == Phase::kJoining ? claim_to_find_ : 0; }
  // Returns whether the leader has received the last Leave or Depart.
  bool farewell_heard() const { return farewell_heard_; }
  // Returns whether this task knows that another process of `task` has replaced the process
  // `incarnation`.
  bool WasReplaced(const std::string& task, int64_t incarnation) const {
    const KnownProcess process{.task = task, .incarnation = incarnation, .replaced = true};
    return std::ranges::find(replaced_, process) != replaced_.end();
  }
  // Returns the generations that this process remembers.
  const std::vector<PastGeneration>& past() const { return history_.past(); }
  // Returns whether the last generation whose members have all exchanged data was led by this
  // process.
  bool LedLastShared() const;
  // Returns whether the task has ever asked to join.
  bool has_joined() const { return has_joined_; }
  // Names the member that the generation's other members wait for. StuckNotice::text is "" if there
  // is none.
  const StuckNotice& stuck() const { return stuck_; }
  // Names the tasks without which this task cannot continue, and states what they must do.
  // AwaitedNotice::text is "" if this task is not waiting.
  AwaitedNotice Awaited() const;

  // ---- output

  // Returns the messages to send to the leader. If there is no session, these messages are lost.
  std::vector<ToLeader> TakeMessages() { return std::exchange(messages_, {}); }
  // Returns the generation that this task has left since the last call, and the reason, or nullopt
  // if it has left none. The caller must abort the generation's communicator and close its sockets.
  struct Left {
    int64_t generation = 0;
    Status why;  // Aborted if a member was asked to exit
  };
  std::optional<Left> TakeLeft() { return std::exchange(left_, std::nullopt); }

 private:
  bool IsCurrent(int64_t generation) const {
    return InGeneration() && formation_.generation == generation;
  }
  enum class Farewell { kNone, kLeaves, kDeparts, kFails };

  void LeaveGeneration(const Status& why);
  void Say(Farewell farewell, const Status& why);
  void AnnounceFarewell();
  void AskToJoin();
  void OnForm(const FormOrder& order);
  void NoteProcesses(const FormOrder& order);
  void NoteReplaced(const KnownProcess& process);
  std::vector<KnownProcess> KnownProcesses() const;
  void BeReadyIfConnected();
  void End(const Status& why);

  const Member self_;
  const bool shrinks_;
  Member leader_;
  Phase phase_ = Phase::kIdle;
  bool connected_ = false;
  bool asked_ = false;  // a JoinRequest was sent in this session; no generation has formed since
  Farewell farewell_ = Farewell::kNone;
  bool farewell_heard_ = false;
  Status failure_;  // the run's failure, if farewell_ is kFails
  Status why_disconnected_;
  Joining joining_;
  int64_t claim_to_find_ = 0;  // the leader's latest ClaimOrder; 0: none in this session
  int64_t found_claim_ = 0;
  bool has_joined_ = false;
  GenerationHistory history_;
  std::vector<ResignedProcess> resigned_;  // in the generations that history_ contains
  int64_t requests_ = 0;                   // the number of JoinRequests
  int64_t last_generation_ = 0;
  FormOrder formation_;
  int rank_ = -1;
  std::map<std::string, int64_t> incarnations_;  // each task's latest process
  std::vector<KnownProcess> replaced_;           // the most recent ones, oldest first
  bool told_known_ = false;                      // the known processes were sent to the leader
  std::vector<bool> sockets_;                    // by rank
  std::set<int> unreachable_;                    // the ranks that were reported to the leader
  Status socket_failure_;                        // the error of the last attempt to connect
  AwaitedNotice awaited_;                        // the leader's latest notice
  StuckNotice stuck_;
  Status end_;
  std::vector<ToLeader> messages_;
  std::optional<Left> left_;
};

}  // namespace tfjob::collectives
