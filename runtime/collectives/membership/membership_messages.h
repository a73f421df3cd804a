// Defines the messages between the leader of a group and its members. The messages travel on one
// stream per member, which delivers them in order until it breaks. When a stream breaks, the
// session ends, and the next session begins with a JoinRequest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/collectives/membership/group.h"
#include "runtime/state/work_phase.h"

namespace tfjob::collectives {

// Limits on a peer's messages.
inline constexpr size_t kMostAgreementBytes = size_t{1} << 20;
inline constexpr size_t kMostMessageBytes = size_t{8} << 20;
inline constexpr size_t kMostMembers = size_t{1} << 14;  // cluster::kMostTasks
inline constexpr size_t kMostKnown = 2 * kMostMembers;   // processes in one message

// A process that has been a member of a generation. Leaders and members inform each other about the
// processes that they know. A replaced process therefore cannot return, even if the leader has been
// replaced as well.
struct KnownProcess {
  std::string task;
  int64_t incarnation = 0;
  bool replaced = false;  // another process of the task has taken this one's place
  bool operator==(const KnownProcess&) const = default;
};

// A process that was a member of a generation.
struct Participant {
  std::string task;
  int64_t incarnation = 0;
  bool operator==(const Participant&) const = default;
};
// A generation that has begun for a process, as that process remembers it (quorum.h).
struct PastGeneration {
  int64_t generation = 0;
  bool shared = false;               // all members have exchanged data in it
  bool resigned = false;             // the process has left or departed since
  std::vector<Participant> members;  // by rank, so the leader comes first; never empty
  bool operator==(const PastGeneration&) const = default;
};

// A process that has left or departed. It no longer counts in this generation and earlier ones.
struct ResignedProcess {
  std::string task;
  int64_t incarnation = 0;
  int64_t generation = 0;
  bool operator==(const ResignedProcess&) const = default;
};

// Member → leader.
struct JoinRequest {    // the member belongs to no generation
  int64_t request = 0;  // counts the requests of this process; the FormOrder repeats it
  int64_t step = -1;    // see Joining
  int64_t state_generation = 0;
  std::string agreement;
  std::string address;        // "host:port"
  bool begins_again = false;  // see Joining
  // The claim (Joining) of the group with which the process has its state or, without a state, the
  // claim that it has found in its folder; 0: none.
  int64_t claim = 0;
  int64_t last_generation = 0;      // the highest generation that this process has seen
  std::vector<KnownProcess> known;  // set in the first request of a session
  // Set only if the group may shrink.
  std::vector<PastGeneration> past;
  // The processes whose departure this process has heard from themselves.
  std::vector<ResignedProcess> resigned;
  bool operator==(const JoinRequest&) const = default;
};
struct ReadyReport {  // all sockets of the generation are connected
  int64_t generation = 0;
  bool operator==(const ReadyReport&) const = default;
};
struct FailureReport {  // an operation of the generation has failed
  int64_t generation = 0;
  std::string why;
  // The member was asked to exit, and aborts the operation because the others take too long.
  bool departs = false;
  bool operator==(const FailureReport&) const = default;
};
// Reports to the leader which rank a member has been waiting for. Sent during a long wait, and once
// more after the wait; `on` is then -1.
struct WaitReport {
  int64_t generation = 0;
  int64_t operation = 0;
  std::string name;
  int on = -1;
  int64_t microseconds = 0;
  bool operator==(const WaitReport&) const = default;
};
// Reports that the member could not open a data connection to this rank. Sent at most once per rank
// of a generation.
struct UnreachableReport {
  int64_t generation = 0;
  int rank = 0;
  bool operator==(const UnreachableReport&) const = default;
};
// Reports that the member works on something other than a step (Group::Announce). Sent repeatedly
// during a phase, and once more after it; `phase` is then kNone.
struct PhaseReport {
  state::WorkPhase phase = state::WorkPhase::kNone;
  int64_t microseconds = 0;  // since the phase has started
  int64_t left = 0;          // the microseconds until it is overdue
  bool operator==(const PhaseReport&) const = default;
};
struct LeaveNotice {            // the member takes no further steps
  int64_t last_generation = 0;  // as in JoinRequest
  bool operator==(const LeaveNotice&) const = default;
};
struct DepartNotice {           // the member belongs to no generation, and its process exits soon
  int64_t last_generation = 0;  // as in JoinRequest
  bool operator==(const DepartNotice&) const = default;
};
struct RunFailureReport {  // the run has failed; the leader ends the job
  std::string words;       // the text of state::RunFailure
  bool operator==(const RunFailureReport&) const = default;
};
using ToLeader =
    std::variant<JoinRequest, ReadyReport, FailureReport, WaitReport, UnreachableReport,
                 PhaseReport, LeaveNotice, DepartNotice, RunFailureReport>;

// Leader → member.
struct FormOrder {      // orders the members to connect to each other
  int64_t request = 0;  // the JoinRequest that this order answers
  int64_t generation = 0;
  int source = 0;
  std::vector<Member> members;         // by rank
  std::vector<KnownProcess> replaced;  // all replaced processes that the leader knows of
  bool operator==(const FormOrder&) const;
};
struct GoOrder {  // all members are connected
  int64_t generation = 0;
  bool operator==(const GoOrder&) const = default;
};
struct WithdrawOrder {  // the generation is void, even if it has begun
  int64_t generation = 0;
  std::string why;
  bool departs = false;  // a member was asked to exit; no member was lost
  bool operator==(const WithdrawOrder&) const = default;
};
struct RefusalOrder {  // this process does not belong to the group
  std::string why;
  bool operator==(const RefusalOrder&) const = default;
};
// Answers a JoinRequest without a state: the member must find this claim in its folder, and then
// ask to join again.
struct ClaimOrder {
  int64_t claim = 0;
  bool operator==(const ClaimOrder&) const = default;
};
struct AwaitedNotice {  // names the tasks without which no generation forms; "": none are missing
  std::string peers;    // "worker 1, worker 2"
  std::string address;  // the only missing peer's address; "" if there are several
  std::string text;     // "worker 1 (10.0.0.1:2222) and worker 2 (10.0.0.2:2222)"
  bool operator==(const AwaitedNotice&) const = default;
};
struct StuckNotice {  // names the member that the others wait for in an operation; "": none
  std::string peer, address;
  std::string text;  // a complete sentence
  // The member is in an announced phase that is not overdue, so the others must continue to wait.
  bool busy = false;
  bool operator==(const StuckNotice&) const = default;
};
struct FarewellReceipt {  // answers a DepartNotice if `departs`, otherwise a LeaveNotice
  bool departs = false;
  bool operator==(const FarewellReceipt&) const = default;
};
struct EndOrder {  // the job has ended
  bool failed = false;
  std::string words;  // the text of state::RunFailure
  bool operator==(const EndOrder&) const = default;
};
using ToMember = std::variant<FormOrder, GoOrder, WithdrawOrder, RefusalOrder, ClaimOrder,
                              AwaitedNotice, StuckNotice, FarewellReceipt, EndOrder>;

// Convert a message to and from JSON. Decoding returns DataLoss if the JSON is not a message within
// the limits above. Strings shown to users pass through state::PlainWords, which shortens them to
// one line of printable characters.
std::string Encode(const ToLeader& message);
std::string Encode(const ToMember& message);
StatusOr<ToLeader> DecodeToLeader(std::string_view text);
StatusOr<ToMember> DecodeToMember(std::string_view text);

// Names a task in messages: "worker 1 (10.0.0.1:2222)", or "worker 1" if its address is unknown.
std::string Describe(const Member& member);
// Appends the names of all ranks that the message mentions: "… (rank 2 is worker 1 (host:port))".
std::string NameRanks(const std::string& message, const std::vector<Member>& members);

}  // namespace tfjob::collectives
