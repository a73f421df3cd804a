// Implements ParameterServer: one session per peer, the state that the sessions share, and the life
// cycle of the state. Private to this package.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/ps/protocol/coordinator.h"
#include "runtime/ps/server/incarnations.h"
#include "runtime/ps/server/peer_session.h"
#include "runtime/ps/server/refusal_log.h"
#include "runtime/ps/server/server.h"
#include "runtime/ps/server/store.h"
#include "runtime/rpc/buffer_pool.h"
#include "runtime/rpc/peer_watch.h"

namespace tfjob::ps {

class CoordinatorLink;
class Synchronizer;
struct Attendance;

// How long a server that is stopping waits for peers that read slowly.
inline constexpr Duration kLastWords{2s};

// Thread-safe. Lock order: first the service's lock, then a session's.
class Service : public ParameterServer {
 public:
  Service(ServerOptions options, std::unique_ptr<rpc::Connector> own_connector);
  ~Service() override;

  Status Admit(const rpc::Identity& peer) override;
  void Serve(const rpc::Identity& peer, const std::string& address,
             rpc::Transport& transport) override;
  Status WaitUntilFinished() override;
  void Stop() override;
  void End(Duration budget) override;
  ServerState State() override;

  // For sessions.
  int index() const { return options_.identity.task_index; }
  const StateMemory& memory() const { return *memory_; }
  RefusalLog& refusals() { return refusals_; }
  // The buffers of the sessions: for gradients and rows that arrive, and for values that are sent.
  const std::shared_ptr<rpc::BufferPool>& buffers() const { return buffers_; }
  // ReadyStore and StoreOf return the store that is in service, or FailedPrecondition if there is
  // none. StoreOf also returns FailedPrecondition if the store belongs to another epoch.
  StatusOr<std::shared_ptr<Store>> ReadyStore();
  StatusOr<std::shared_ptr<Store>> StoreOf(int64_t epoch);
  PeerRole RoleOf(const rpc::Identity& peer) const;
  std::string ChiefName() const;  // "chief 0"
  // Takes the current store out of service and frees it, then creates an empty one, to be filled.
  // Returns InvalidArgument if the assignment is invalid or needs more memory than is available,
  // and Aborted unless `epoch` is higher than all earlier epochs. After either error, the current
  // store stays in service.
  StatusOr<std::shared_ptr<Store>> Define(const std::string& assignment, int64_t epoch);
  // Frees a store that will not be completely filled.
  void Abandon(const std::shared_ptr<Store>& store);
  // Puts the store, which `filler` has filled, into service. Returns Aborted if another store has
  // been defined in the meantime.
  Status Activate(std::shared_ptr<Store> store, const protocol::Worker& filler);
  // Describes the state, for the process behind `session`.
  std::pair<rpc::FrameHeader, std::string> DescribeState(const PeerSession& session);
  // Like DescribeState, but returns only the header, which is cheap to build, unlike the body.
  rpc::FrameHeader DescribeStep();
  // ps 0: determines the incarnation of the session's process (Incarnations::Register). Returns
  // Aborted if there is no state yet, since only the state's ledger shows which incarnations are
  // taken.
  struct Registration {
    int64_t incarnation = 0;
    int64_t drawn = 0;  // the task's position in its data
  };
  StatusOr<Registration> RegisterProcess(const PeerSession& session, int64_t own, int64_t heard);
  // Servers other than ps 0: see Incarnations::Announce.
  Status Announce(const PeerSession& session, int64_t incarnation);
  // Sets the learning rate of later updates: at once in asynchronous mode, and from the next commit
  // on in synchronous mode. Returns InvalidArgument or FailedPrecondition if the optimizer does not
  // accept the rate, or if this server has no state.
  Status SetLearningRate(const state::LearningRate& rate);
  // Called when the task will send no more contributions.
  void Leave(const protocol::Worker& worker, int64_t incarnation, bool for_good);
  void Hold(PeerSession& session, uint64_t sequence);
  void Renew(const protocol::Worker& worker);
  // Ends the hold or, with `keep`, leaves it in effect. Returns an error if the hold had already
  // ended.
  Status Release(const protocol::Worker& worker, bool keep);
  void Finish();
  // Stops the run with an error that the peer of this session has reported. The chief's message
  // takes precedence.
  void Fail(const PeerSession& session, const std::string& words);
  // Called after the task of this session has been asked to stop. The task will send no more
  // contributions.
  void OnTaskEnding(const PeerSession& session);
  // OnCopyBegins is called when the chief starts to copy the state through this session, and
  // OnTaken when the chief has copied the state of all servers.
  void OnCopyBegins(const PeerSession& session);
  void OnTaken();
  // Called when the number of table copies that a session keeps changes by `more`. A server that
  // was asked to stop waits until the chief no longer needs these copies.
  void OnTablesKept(int more);
  // Returns whether this server's last copy has started, after which its values must not change.
  // Returns false again if the session that copies the state is closed before the chief has the
  // copies of all servers.
  bool frozen() const { return frozen_; }
  // Calls store.Count, or returns nullopt if the server is frozen. If the last copy was started
  // after the first frame of a contribution had arrived, the copy may lack some of its updates, so
  // the contribution must not count.
  std::optional<int64_t> CountUnlessFrozen(Store& store, const protocol::Name& name, int64_t drawn);
  void FromParticipant(const PeerSession& session, const std::string& message);
  // For synchronous states.
  Synchronizer& synchronizer() { return *synchronizer_; }

  // For the synchronizer.
  std::unique_ptr<CoordinatorLink> LinkToCoordinator(Synchronizer& synchronizer);
  std::string coordinator();  // the address of ps 0, as the chief last named it
  void TellOfCoordinator(const state::PeerEvent& event);
  void SendToServer(int server, std::string message);
  // Takes `store` out of service, unless another store has replaced it.
  void Forget(const std::shared_ptr<Store>& store);
  void TellWait(int64_t step, const std::vector<protocol::Worker>& awaited);
  // Reports that the worker has lost its token, or contributes again.
  void TellLapse(int64_t step, const protocol::Lapse& lapse);
  void TellReturn(const protocol::Worker& worker);
  protocol::LeaseRule lease_rule() const {
    return {options_.step_lease_factor, options_.step_lease_least};
  }
  // Report that the first step waits for these tasks to join until `left` has passed
  // (TellGathering), or that it no longer waits for them (TellAbsent).
  void TellGathering(const std::vector<protocol::Worker>& missing, Duration left);
  void TellAbsent(const std::vector<protocol::Worker>& absent);
  // Calls act(session) if the process of `worker` with this incarnation is connected.
  template <typename Act>
  void WithSession(const protocol::Worker& worker, int64_t incarnation, const Act& act) {
    MutexLock lock(mutex_);
    auto found = sessions_.find(worker);
    if (found != sessions_.end() && found->second->incarnation() == incarnation) {
      act(*found->second);
    }
  }

 private:
  Status BeginEpoch(int64_t epoch, const std::string& coordinator);
  Status EpochIsOver(int64_t epoch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tick();
  void Register(PeerSession& session);
  void Unregister(PeerSession& session, const Status& why);
  void Tell(state::PeerEvent::Kind kind, const PeerSession& session,
            const std::string& message) const;
  // Notes the incarnations that the ledgers name. Disconnects older processes and refuses them from
  // now on: according to the ledgers, all contributions of an older process have already been
  // applied.
  void Learn(const std::map<protocol::Worker, int64_t>& incarnations)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<state::PeerState> MembersLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  rpc::FrameHeader DescribeStepLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::pair<rpc::FrameHeader, std::string> DescribeStateLocked(const PeerSession& to,
                                                               const Attendance& attendance)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the peer is the chief. If the chief is unknown, the task that has filled this
  // server counts as the chief, because only the chief fills servers.
  bool IsChiefLocked(const PeerSession& session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits, up to a time limit, until all frames queued for the peers have been written.
  void AwaitLastWords() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status NotReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the server's state to the chief or, with `all`, to every training task.
  void SendState(bool all);
  void TellOf(state::PeerEvent::Kind kind, const protocol::Worker& worker,
              const std::string& message);
  // Called if the last copy has not been completed: resumes with the contributions that arrived
  // after the start of the copy.
  void Unfreeze() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether a server that was asked to stop must continue to serve.
  bool NeededLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether there is a state and a training task is connected.
  bool ServesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Describes what a server that does not serve is waiting for: the state, or tasks.
  state::PeerEvent DescribeWaitLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServerOptions options_;
  const std::unique_ptr<rpc::Connector> own_connector_;
  const std::unique_ptr<Synchronizer> synchronizer_;
  const std::shared_ptr<rpc::BufferPool> buffers_;
  const std::shared_ptr<StateMemory> memory_;
  std::atomic<bool> synchronous_ = false;  // whether the state is synchronous
  std::atomic<bool> frozen_ = false;
  RefusalLog refusals_;

  // Held while a store is put into or taken out of service, so that the service and the
  // synchronizer always switch to the same store. Acquired before the synchronizer's lock and
  // mutex_.
  Mutex change_mutex_;
  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Store> store_ ABSL_GUARDED_BY(mutex_);    // in service; null: empty
  std::shared_ptr<Store> filling_ ABSL_GUARDED_BY(mutex_);  // being filled
  std::string coordinator_ ABSL_GUARDED_BY(mutex_);         // address of ps 0, from the chief
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;               // the highest epoch defined so far
  Duration waiting_since_ ABSL_GUARDED_BY(mutex_) = RealClock().Monotonic();
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Status failure_ ABSL_GUARDED_BY(mutex_);                 // the run's failure; OK: none
  bool chief_has_failed_ ABSL_GUARDED_BY(mutex_) = false;  // the chief has recorded the failure
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;            // the process was asked to stop
  // The deadline until which a server that was asked to stop waits for peers that read slowly.
  SteadyTime last_words_until_ ABSL_GUARDED_BY(mutex_) = SteadyTime::max();
  bool copied_ ABSL_GUARDED_BY(mutex_) = false;  // a copy was started after ending_ was set
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;   // the chief has the copies of all servers
  int tables_kept_ ABSL_GUARDED_BY(mutex_) = 0;  // see OnTablesKept
  std::map<protocol::Worker, PeerSession*> sessions_ ABSL_GUARDED_BY(mutex_);
  Incarnations incarnations_ ABSL_GUARDED_BY(mutex_);
  // Tasks whose connection was lost.
  std::map<protocol::Worker, state::PeerState> lost_ ABSL_GUARDED_BY(mutex_);

  std::set<protocol::Worker> endings_ ABSL_GUARDED_BY(mutex_);  // tasks that were asked to stop
  std::set<protocol::Worker> stuck_ ABSL_GUARDED_BY(mutex_);    // tasks that lost their token

  // The session that copies the state, and the task that last filled a store.
  const PeerSession* copier_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<protocol::Worker> filler_ ABSL_GUARDED_BY(mutex_);

  rpc::PeerWatch watch_;
};

}  // namespace tfjob::ps
