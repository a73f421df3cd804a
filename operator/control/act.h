// Carries out a Plan in its order: adopts and creates; the status, acknowledged; deletes; events.
// Every completed action is noted in the cache at once, so that the next reconcile sees it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/client/client.h"
#include "operator/control/cache.h"
#include "operator/control/memory.h"
#include "operator/control/observer.h"
#include "operator/control/report.h"
#include "operator/plan/plan.h"
#include "operator/policy/facts/history.h"
#include "operator/render/render.h"
#include "runtime/base/clock.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {

// One job as one reconcile sees it.
struct Look {
  std::string key;  // "namespace/name"
  uint64_t id = 0;  // of the reconcile, for logs
  api::TFJob job;
  policy::Snapshot snapshot;
};

// The result of deciding about a job: its verdict, the objects to have, the calls to make.
struct Decision {
  policy::Verdict verdict;
  render::Desired desired;
  plan::Plan plan;
};

// Queues an event under `name`, the name that its object is to have; delivery is
// best effort. Thread-safe.
using Record = std::function<void(std::string name, objects::Event event)>;

// Thread-safe; one worker at a time per job.
class Actor {
 public:
  // Calls of one plan run on `pool`, several at a time. Events go to `record` or, if it is empty,
  // through `client` like every other call. All must outlive this.
  Actor(client::Client& client, Cache& cache, Clock& clock, ThreadPool& pool, Observer& observer,
        Record record)
      : client_(client),
        cache_(cache),
        clock_(clock),
        pool_(pool),
        observer_(observer),
        record_(std::move(record)) {}

  // Returns the first error that a later try may cure, except for events: they are no reason to
  // retry. Aborted: the status was decided from an old version of the job; nothing that follows the
  // status was done.
  Status Act(const Look& look, const Decision& decision, Memory& memory);

  // Ends large plans in progress after the calls that are under way; Act then returns Cancelled.
  void Stop() { stopping_ = true; }

  // Sends memory.events; those that fail for a transient reason stay, to be sent by
  // a later reconcile.
  void SendEvents(Memory& memory);

 private:
  struct CreateResult {
    Status status;                              // OK: one of the two below is set
    std::optional<client::Object> object;       // ours, which now exists
    std::optional<policy::BlockedName> holder;  // the object of another owner that holds the name
    // The object already existed, so an earlier pass may have reported it. Its event is named after
    // this object alone, and is sent once.
    bool was_there = false;
  };

  Status Adopt(const Look& look, const plan::Plan& plan);
  Status ArrangePodGroup(const Look& look, const plan::Plan& plan, Memory& memory);
  Status CreateAll(const Look& look, const Decision& decision, Memory& memory);
  // Creates the objects in `wanted`, all of one kind, in growing batches, until a batch meets an
  // error that would affect all; reports them in one event. If the server refuses a whole batch of
  // a replica type as invalid, the rest of that type is skipped. NotFound: the namespace or the job
  // is gone, or being deleted.
  Status Create(const Look& look, std::vector<render::DesiredObject> wanted,
                const Decision& decision, Memory& memory);
  Status CreateInBatches(const Look& look, std::vector<render::DesiredObject> wanted,
                         const Decision& decision, std::vector<Child>& created, Memory& memory);
  // Reads the object. Never returns Internal.
  StatusOr<client::Object> Find(const client::Key& key);
  CreateResult CreateOne(const Look& look, const render::DesiredObject& wanted,
                         const Decision& decision);
  Status Note(const Look& look, const render::DesiredObject& wanted, const policy::Gang& gang,
              CreateResult result, std::vector<Child>& created, Memory& memory);
  Status WriteStatus(const Look& look, const Decision& decision, Memory& memory);
  Status DeleteAll(const Look& look, const plan::Plan& plan, Memory& memory);
  // NotFound: the object with that UID is gone.
  Status DeleteOne(const Look& look, const plan::Delete& wanted);
  Status NoteDeleted(const Look& look, const plan::Delete& wanted, const Status& status,
                     Memory& memory);

  client::Client& client_;
  Cache& cache_;
  Clock& clock_;
  ThreadPool& pool_;
  Observer& observer_;
  const Record record_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace tfjob::control
