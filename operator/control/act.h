// Carries out a Plan in its order: adopts and creates; the status, acknowledged; deletes; events. What was done is
// noted in the cache at once, so that the next look sees it.
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
#include "operator/plan/plan.h"
#include "operator/policy/facts/history.h"
#include "operator/render/render.h"
#include "runtime/base/clock.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {

// One job at one look.
struct Look {
  std::string key;  // "namespace/name"
  uint64_t id = 0;  // of the reconcile, for logs
  api::TFJob job;
  policy::Snapshot snapshot;
};

// What is to be done about it.
struct Decision {
  policy::Verdict verdict;
  render::Desired desired;
  plan::Plan plan;
};

// Takes an event to be sent, under the name that its object is to have; sees to it that it arrives, or not. Thread-safe.
using Record = std::function<void(std::string name, objects::Event event)>;

// Whether an event tells of everyday business ("Created pods: x, y"), so that it may go missing where there are too many.
bool IsRoutine(const objects::Event& event);

// Thread-safe; for one job by one worker at a time.
class Actor {
 public:
  // Calls of one plan go out on `pool`, several at a time. Events go to `record`, or without it through `client` like
  // every other call. All must outlive this.
  Actor(client::Client& client, Cache& cache, Clock& clock, ThreadPool& pool, Observer& observer,
        Record record)
      : client_(client),
        cache_(cache),
        clock_(clock),
        pool_(pool),
        observer_(observer),
        record_(std::move(record)) {}

  // The first error that a later try may cure, events apart: they are no reason to try again. Aborted: the status was
  // decided from an old version of the job; nothing that follows the status was done.
  Status Act(const Look& look, const Decision& decision, Memory& memory);

  // Large plans in hand end after the calls that are under way: Cancelled.
  void Stop() { stopping_ = true; }

  // Sends memory.events; those that fail for a passing reason stay, to be sent with a later look.
  void SendEvents(Memory& memory);

 private:
  struct CreateResult {
    Status status;                              // OK: one of the two below is set
    std::optional<client::Object> object;       // ours, now there
    std::optional<policy::BlockedName> holder;  // the stranger that holds the name
    // It was found, not answered to the create: perhaps told of before. Its event is named after it alone, and comes once.
    bool was_there = false;
  };

  Status Adopt(const Look& look, const plan::Plan& plan);
  Status ArrangePodGroup(const Look& look, const plan::Plan& plan, Memory& memory);
  Status CreateAll(const Look& look, const Decision& decision, Memory& memory);
  // Creates those of `wanted`, all of one kind, in growing batches, until a batch meets an error that would meet all; one
  // event tells of them. A replica type of which the server refused a whole batch as invalid is left alone. NotFound: the
  // namespace or the job is gone, or going.
  Status Create(const Look& look, std::vector<render::DesiredObject> wanted,
                const Decision& decision, Memory& memory);
  Status CreateInBatches(const Look& look, std::vector<render::DesiredObject> wanted,
                         const Decision& decision, std::vector<plan::Child>& created,
                         Memory& memory);
  // Reads it. Never Internal.
  StatusOr<client::Object> Find(const client::Key& key);
  CreateResult CreateOne(const Look& look, const render::DesiredObject& wanted,
                         const Decision& decision);
  Status Note(const Look& look, const render::DesiredObject& wanted, const policy::Gang& gang,
              CreateResult result, std::vector<plan::Child>& created, Memory& memory);
  Status WriteStatus(const Look& look, const Decision& decision, Memory& memory);
  Status DeleteAll(const Look& look, const plan::Plan& plan, Memory& memory);
  // NotFound: that object, by its UID, is gone.
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
