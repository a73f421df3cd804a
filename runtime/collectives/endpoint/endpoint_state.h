// Defines the state that an endpoint and its group share: the state machines, the connections that
// carry their messages, and the generation's sockets and communicator. Private to this package.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/collectives/endpoint/endpoint.h"
#include "runtime/collectives/membership/address_book.h"
#include "runtime/collectives/membership/exchange_timer.h"
#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/membership/leader_search.h"
#include "runtime/collectives/membership/member.h"
#include "runtime/collectives/membership/pause_watch.h"
#include "runtime/collectives/membership/socket_intake.h"
#include "runtime/rpc/connection.h"
#include "runtime/rpc/peer_watch.h"

namespace tfjob::collectives {

// The messages on a stream of the service "group".
enum GroupFrame : uint16_t { kToLeader = 1, kToMember = 2 };

// Returns the content of a message, or DataLoss if the frame is too long for a message.
StatusOr<std::string> TextOf(rpc::IncomingFrame& frame);

struct Endpoint::State {
  explicit State(EndpointOptions endpoint_options);
  ~State();

  const EndpointOptions options;
  const int task;  // this process's index in options.tasks
  static constexpr SessionId kOwnSession = 1;

  // Name a task: "chief 0", "chief 0 (10.0.0.1:2222)".
  std::string NameOf(int number) const;
  std::string Place(int number) const ABSL_LOCKS_EXCLUDED(addresses_mutex);
  Member DescriptionOf(int number) const ABSL_LOCKS_EXCLUDED(addresses_mutex);
  // Returns "" if the address is unknown.
  std::string AddressOf(int number) const ABSL_LOCKS_EXCLUDED(addresses_mutex);
  TaskView View() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return {.task = task,
            .shrinks = options.shrinks,
            .leads = machine != nullptr,
            .occupied = occupied,
            .first_follows = machine != nullptr && task != 0 && machine->IsConnected(0),
            .rests = RealClock().Monotonic() < rests_until,
            .call_due = options.least_tasks > 0 && RealClock().Monotonic() >= next_call,
            .member = &member};
  }
  // Starts to lead, or closes the sessions of the members, which then search for another leader.
  void StartLeading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void StopLeading(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // See Group::WriteGuard.
  bool MayWrite() ABSL_LOCKS_EXCLUDED(mutex);
  bool HasRightToWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Returns the task's index in options.tasks, or -1 if the task does not train.
  int TaskOf(const rpc::Identity& identity) const;
  // Returns whether the task is currently part of the group, that is, is connected or is a member
  // of this task's generation. In a group that is not elastic, all tasks are part of the group.
  bool IsPresent(int number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Mutex mutex;
  CondVar changed;  // notified after every event

  // Null unless this task currently leads.
  std::unique_ptr<Leader> machine ABSL_GUARDED_BY(mutex);
  // The streams of the members. A connection is valid while it is listed here.
  struct Session {
    rpc::Connection* connection = nullptr;
    int task = 0;
    bool suspected = false;
  };
  std::map<SessionId, Session> sessions ABSL_GUARDED_BY(mutex);
  SessionId next_session ABSL_GUARDED_BY(mutex) = kOwnSession + 1;

  GroupMember member ABSL_GUARDED_BY(mutex);
  // The task that leads, or that led last, as far as this task knows.
  int leader ABSL_GUARDED_BY(mutex) = 0;
  int occupied ABSL_GUARDED_BY(mutex) = -1;  // see TaskView
  // This task does not lead before rests_until (TaskView::rests). `pause` is the length of the last
  // such pause of a first task that the others could not connect to.
  Duration rests_until ABSL_GUARDED_BY(mutex){0};
  Duration pause ABSL_GUARDED_BY(mutex){0};
  Duration next_call ABSL_GUARDED_BY(mutex){0};  // see TaskView::call_due
  // The stream to the leader, valid while it is set. Null if there is no stream or this task leads.
  rpc::Connection* to_leader ABSL_GUARDED_BY(mutex) = nullptr;
  bool leader_suspected ABSL_GUARDED_BY(mutex) = false;
  int64_t leader_incarnation ABSL_GUARDED_BY(mutex) = 0;

  PauseWatch pauses ABSL_GUARDED_BY(mutex);

  SocketIntake intake ABSL_GUARDED_BY(mutex);
  // The generation's channel, its sockets by rank, and its communicator. The communicator is null
  // until the generation begins; the sockets then move into it.
  DataChannel channel ABSL_GUARDED_BY(mutex);
  std::vector<wire::UniqueFd> sockets ABSL_GUARDED_BY(mutex);
  std::shared_ptr<Communicator> communicator ABSL_GUARDED_BY(mutex);
  Status why_left ABSL_GUARDED_BY(mutex);   // why this task left its latest generation
  int64_t left ABSL_GUARDED_BY(mutex) = 0;  // the number of that generation
  // The time at which the watcher last reported a wait.
  std::optional<Duration> reported ABSL_GUARDED_BY(mutex);
  StuckNotice stuck ABSL_GUARDED_BY(mutex);  // the last notice that was reported
  ExchangeTimer timer ABSL_GUARDED_BY(mutex);
  // The phase that this task is in (Group::Announce), and what the watcher last reported about it.
  struct Busy {
    state::WorkPhase phase = state::WorkPhase::kNone;
    Duration since{0}, until{0};
  };
  Busy busy ABSL_GUARDED_BY(mutex);
  state::WorkPhase busy_reported ABSL_GUARDED_BY(mutex) = state::WorkPhase::kNone;
  Duration busy_reported_at ABSL_GUARDED_BY(mutex){0};
  bool state_is_shared ABSL_GUARDED_BY(mutex) = false;  // see Group::StateIsShared
  // From GroupOptions; null if there is no group.
  std::function<bool()> asked_to_end ABSL_GUARDED_BY(mutex);
  Duration stop_patience ABSL_GUARDED_BY(mutex){0};
  // The time at which the watcher noticed that this process was asked to exit.
  std::optional<Duration> asked_at ABSL_GUARDED_BY(mutex);

  // Carries out the outputs of the state machines, including the messages between them, until no
  // output is left. Called after every event.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // See Group::Announce.
  void Announce(state::WorkPhase phase, Duration limit) ABSL_LOCKS_EXCLUDED(mutex);
  // Passes an event to the group's sink.
  void Say(state::PeerEvent::Kind kind, const std::string& peer, const std::string& address,
           const std::string& message) ABSL_LOCKS_EXCLUDED(mutex, sink_mutex);
  // Sets the sink, which is null if there is no group.
  void SetSink(state::PeerEventSink sink) ABSL_LOCKS_EXCLUDED(sink_mutex);
  // Ends a generation whose communicator has failed with `why`. Returns the error for the
  // communicator's user: `why` with the names of the ranks or, if `why` is Unavailable, the
  // leader's reason. The error is Aborted if no task was lost but one was asked to exit.
  Status Failed(int64_t generation, const std::vector<Member>& members, const Status& why)
      ABSL_LOCKS_EXCLUDED(mutex);
  // Returns the on_change function for watching a peer. The function calls `suspected` with `mutex`
  // held.
  std::function<void(rpc::Health, Duration)> OnHealth(int number,
                                                      std::function<void(bool)> suspected);

 private:
  void Tick() ABSL_LOCKS_EXCLUDED(mutex);
  void ReportPhase(Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void ReportWait(const Waiting& wait, Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Aborts an operation that takes longer than options.exchange_timeout.
  void EndLateExchange(const Waiting& wait, Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Aborts an operation that is still waiting some time after this process was asked to exit.
  void EndBeforeStop(const Waiting& wait, Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void SayStuck() ABSL_LOCKS_EXCLUDED(mutex);
  void LeaveGeneration(const GroupMember::Left& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool PassOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool PassOnOfLeader() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Remembers the addresses of the members of an elastic group's generation.
  void NoteAddresses(const std::vector<Member>& members) ABSL_LOCKS_EXCLUDED(addresses_mutex);
  std::vector<Member> DescribeAll() const ABSL_LOCKS_EXCLUDED(addresses_mutex);

  mutable Mutex addresses_mutex;  // may be locked while `mutex` is
  AddressBook addresses ABSL_GUARDED_BY(addresses_mutex);

  Mutex sink_mutex;  // held while an event is passed on
  state::PeerEventSink sink ABSL_GUARDED_BY(sink_mutex);

 public:
  rpc::PeerWatch watch;  // last, because its thread uses all of the above
};

}  // namespace tfjob::collectives
