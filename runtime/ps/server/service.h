// The parameter server behind its contract: its life cycle, its sessions, its state. Inside the
// room only.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/ps/server/server.h"
#include "runtime/ps/server/session.h"
#include "runtime/ps/server/store.h"
#include "runtime/rpc/peer_watch.h"

namespace tfjob::ps {

class CoordinatorLink;
class Synchronizer;

// Thread-safe. Its lock is taken before a session's.
class Service : public ParameterServer {
 public:
  Service(ServerOptions options, std::unique_ptr<rpc::Connector> own_connector);
  ~Service() override;

  Status Admit(const rpc::Identity& peer) override;
  void Serve(const rpc::Identity& peer, const std::string& address,
             rpc::Transport& transport) override;
  Status WaitUntilFinished() override;
  void Stop() override;
  ServerState State() override;

  // For sessions.
  int index() const { return options_.identity.task_index; }
  // As of Store::RunLine.
  std::string run_line() const {
    return Store::RunLine(options_.identity.job_uid, options_.identity.attempt);
  }
  // FailedPrecondition while there is no state, or when it is of another epoch.
  StatusOr<std::shared_ptr<Store>> ReadyStore();
  StatusOr<std::shared_ptr<Store>> StoreOf(int64_t epoch);
  // A new, unfilled store under a greater epoch; what was before it is refused from now on.
  StatusOr<std::shared_ptr<Store>> Define(const std::string& assignment, int64_t epoch);
  // The filled store is the state. Aborted when another was defined meanwhile.
  Status Activate(std::shared_ptr<Store> store);
  std::pair<rpc::FrameHeader, std::string> DescribeState();
  void Leave(const protocol::Worker& worker, int64_t incarnation);
  void Hold(Session& session, uint64_t sequence);
  void Renew(const protocol::Worker& worker);
  Status Release(const protocol::Worker& worker);
  void Finish();
  void FromParticipant(const rpc::Identity& peer, const std::string& message);
  // Null unless the state is synchronous.
  Synchronizer* synchronizer();

  // For the synchronizer.
  std::unique_ptr<CoordinatorLink> LinkToCoordinator(Synchronizer& synchronizer);
  void TellOfCoordinator(const Event& event);
  void SendToServer(int server, std::string message);
  // The state is void, if it is still this one.
  void Forget(const std::shared_ptr<Store>& store);
  void TellWait(int64_t step, const std::vector<protocol::Worker>& awaited);
  // Calls act(session) for the session of that process, if it is connected.
  template <typename Act>
  void WithSession(const protocol::Worker& worker, int64_t incarnation, const Act& act) {
    MutexLock lock(mutex_);
    auto found = sessions_.find(worker);
    if (found != sessions_.end() && found->second->peer().incarnation == incarnation) {
      act(*found->second);
    }
  }

 private:
  void Tick();
  void Register(Session& session);
  void Unregister(Session& session, const Status& why);
  void Tell(Event::Kind kind, const Session& session, const std::string& message) const;
  // What a ledger has of a task's later start, an earlier one cannot add to.
  void RefuseOlderThan(const std::map<protocol::Worker, int64_t>& incarnations)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<PeerState> MembersLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits, not for ever, until what was sent to the peers is written.
  void AwaitLastWords() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status NotReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // There is a state, and a training task is connected.
  bool ServesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whom a server waits for that does not serve.
  Event DescribeWaitLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServerOptions options_;
  const std::unique_ptr<rpc::Connector> own_connector_;
  const std::unique_ptr<Synchronizer> synchronizer_;
  std::atomic<bool> synchronous_ = false;  // the state's mode

  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Store> store_ ABSL_GUARDED_BY(mutex_);    // serves; null: empty
  std::shared_ptr<Store> filling_ ABSL_GUARDED_BY(mutex_);  // being filled
  std::string coordinator_ ABSL_GUARDED_BY(mutex_);         // ps 0's address, as the chief said
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;               // the greatest that was defined
  Duration waiting_since_ ABSL_GUARDED_BY(mutex_) = RealClock().Monotonic();
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<protocol::Worker, Session*> sessions_ ABSL_GUARDED_BY(mutex_);
  std::map<protocol::Worker, int64_t> incarnations_ ABSL_GUARDED_BY(mutex_);  // the newest seen
  // Tasks that were here and are not.
  std::map<protocol::Worker, PeerState> lost_ ABSL_GUARDED_BY(mutex_);

  rpc::PeerWatch watch_;
};

}  // namespace tfjob::ps
