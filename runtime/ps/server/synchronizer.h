// Runs the synchronous protocol on one server: stages contributions, applies the coordinator's
// commits, and, on ps 0, runs the coordinator. Private to this package.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/kernels/stream.h"
#include "runtime/ps/protocol/coordinator.h"
#include "runtime/ps/protocol/participant.h"
#include "runtime/ps/server/intake.h"
#include "runtime/ps/server/staging.h"
#include "runtime/ps/server/store.h"
#include "runtime/rpc/buffer_pool.h"
#include "runtime/rpc/frame.h"
#include "runtime/rpc/identity.h"

namespace tfjob::ps {

// Lists the tasks that have not joined a synchronous run. On all servers except ps 0, the lists are
// empty.
struct Attendance {
  std::vector<protocol::Worker> missing;  // the first step is waiting for them
  std::vector<protocol::Worker> absent;   // missing, but the first step no longer waits for them
};

class CoordinatorLink;
class Service;

// Thread-safe. Lock order: first the synchronizer's lock, then the service's.
class Synchronizer {
 public:
  Synchronizer(Service& service, const rpc::Identity& identity, ThreadPool* pool);
  ~Synchronizer();
  // Stops and joins the threads. Must be called before the service is destroyed.
  void Stop();

  // Fill must be called after the server has been filled with the state `store`, and Void when it
  // no longer has a valid state.
  void Fill(const std::shared_ptr<Store>& store);
  void Void();
  // ps 0: the commits of this state contain its learning rate from now on (Store::learning_rate).
  void SetLearningRate(const std::shared_ptr<Store>& store);

  // Returns the Staging for the bytes of the contribution, or null if they are not needed. While
  // other contributions arrive at full speed, waits up to 5 s before allocating memory for another
  // one. The caller must call Staged once all bytes have arrived, even if the result is null.
  // Returns ResourceExhausted if the task already has more contributions on this server than the
  // protocol ever requests from a task.
  StatusOr<std::shared_ptr<Staging>> Stage(const protocol::Name& name, int64_t step,
                                           const std::shared_ptr<Store>& store);
  // See protocol::StagedReport for `drawn`.
  void Staged(const protocol::Name& name, int64_t epoch, int64_t step, int64_t drawn,
              std::shared_ptr<Staging> staging);
  // Called after the task has requested the current values. The task is a member from now on.
  void Pull(const protocol::Name& name, int64_t epoch);
  void Leave(const protocol::Worker& worker, int64_t incarnation, bool for_good);
  // Called after one of the task's sessions has been closed. The task leaves unless it already has
  // another session.
  void Disconnected(const protocol::Worker& worker, int64_t incarnation);
  // Returns whether the step is waiting for the task's gradient, as far as this server knows.
  bool Awaits(const protocol::Worker& worker);

  // Requests a hold. The answer is sent with ReplyTo(sequence) of the worker's session.
  void Hold(const protocol::Worker& worker, int64_t incarnation, uint64_t sequence);
  void Renew(const protocol::Worker& worker);
  // Ends the hold. Returns whether the hold was still in effect.
  bool Release(const protocol::Worker& worker);
  // Returns whether the worker still has the hold.
  bool Holds(const protocol::Worker& worker);

  // `incarnation` belongs to the process that sent the message.
  void FromParticipant(int server, int64_t incarnation, const std::string& message);
  void FromCoordinator(const std::string& message);
  void Connected();  // the link to the coordinator is up
  void Tick();
  Attendance GetAttendance();
  // Returns the size of the gradients that wait for their step. Does not acquire the synchronizer's
  // lock.
  size_t staged_bytes() const { return buffers_->lent_bytes(); }
  // Returns the buffers in which gradients are staged.
  const std::shared_ptr<rpc::BufferPool>& buffers() const { return buffers_; }

 private:
  struct Work {
    // If this is nullopt, `updates` has two elements, and the second is to be summed into the
    // first.
    std::optional<protocol::Commit> commit;
    bool measures = false;  // the commit is to be measured, not applied
    std::vector<double> squares;
    std::shared_ptr<Store> store;
    std::vector<std::shared_ptr<Staging>> updates;  // parallel to commit.set
  };
  struct PendingHold {
    int64_t incarnation = 0;
    uint64_t sequence = 0;
  };

  void DropOldLink() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetRateOfCommits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Carry(const protocol::ParticipantActions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Carry(const protocol::CoordinatorActions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendToCoordinator(const protocol::ToCoordinator& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueCommit(const protocol::Commit& commit, bool measures,
                   const std::vector<double>& squares) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueMerge(const protocol::Merge& merge) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the position of a task in its data, including contributions that are certain to be
  // used.
  int64_t DrawnBy(const protocol::Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Joined(const protocol::Name& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns ResourceExhausted if the task is not allowed to stage another contribution. Each of its
  // processes may have at most `most` contributions on this server.
  Status CheckStagedBy(const protocol::Name& name, size_t most) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyLoop();
  void CarryOut(const Work& work);
  void Apply(const Work& work, const protocol::Commit& commit);
  // Applies the commit to a shard whose gradient arrives as rows.
  void ApplyRows(const Work& work, const protocol::Commit& commit, int shard, bool by_value);

  Service& service_;
  const int index_;
  kernels::Stream stream_;  // used by the applying thread
  std::vector<std::byte> sum_;

  Mutex mutex_;
  CondVar wake_;
  protocol::Participant participant_ ABSL_GUARDED_BY(mutex_);
  // Null except on ps 0, where it is created with the first state.
  std::unique_ptr<protocol::Coordinator> coordinator_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Store> store_ ABSL_GUARDED_BY(mutex_);
  std::map<protocol::Name, std::shared_ptr<Staging>> staged_ ABSL_GUARDED_BY(mutex_);
  std::map<protocol::Worker, PendingHold> holds_ ABSL_GUARDED_BY(mutex_);
  std::deque<Work> work_ ABSL_GUARDED_BY(mutex_);
  std::vector<protocol::Worker> absent_ ABSL_GUARDED_BY(mutex_);
  Duration gather_until_ ABSL_GUARDED_BY(mutex_){0};
  bool backups_ ABSL_GUARDED_BY(mutex_) = false;  // more tasks train than a step needs
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t waited_step_ ABSL_GUARDED_BY(mutex_) = -1;
  Duration waited_since_ ABSL_GUARDED_BY(mutex_){0};

  const std::shared_ptr<Intake> intake_ = Intake::Create({});
  const std::shared_ptr<rpc::BufferPool> buffers_ = rpc::BufferPool::Create();
  std::unique_ptr<CoordinatorLink> link_ ABSL_GUARDED_BY(mutex_);  // null on ps 0
  Thread applier_;
};

}  // namespace tfjob::ps
