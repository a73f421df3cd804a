// Reconciles a job, given its key. Reads as a list: fetch, admit, observe, decide,
// render, plan, act.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "operator/client/client.h"
#include "operator/control/act.h"
#include "operator/control/cache.h"
#include "operator/control/memory.h"
#include "operator/control/native_api.h"
#include "operator/control/nodes.h"
#include "operator/control/observer.h"
#include "operator/policy/facts/options.h"
#include "operator/policy/verdict.h"
#include "operator/render/render.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {

// What decisions depend on besides the cluster.
struct Settings {
  policy::Options policy;
  render::AddressScheme address;  // required
  // The cleanPodPolicy of jobs that specify none.
  api::CleanPodPolicy default_clean_pod_policy = api::CleanPodPolicy::kNone;
  // Empty: nodes are not observed.
  IsNodeLost is_node_lost;
  // How long a status may be out of date if only its counts have changed: pods that start one after
  // the other cause one write. Conditions are written at once.
  Duration count_patience{0};
  // Where events go. Empty: through the client, at once, and again with a later reconcile
  // if that fails.
  Record record;
};

struct Outcome {
  uint64_t id = 0;                      // of the reconcile, for logs
  Status status;                        // not OK: retry after a backoff
  std::optional<Duration> again_after;  // reconcile then, unless something happens before
};

// Ensures that the pod groups of that scheduler are watched. False while their first list
// may still arrive.
using WatchPodGroups = std::function<bool(policy::GangScheduler scheduler)>;

// Thread-safe; one worker at a time per key.
class Reconciler {
 public:
  Reconciler(client::Client& client, Cache& cache, Clock& clock, ThreadPool& pool,
             Observer& observer, NativeApi& native_api, WatchPodGroups watch_pod_groups,
             Settings settings);

  Outcome Reconcile(const std::string& key);

  // Breaks off large plans in progress.
  void Stop() { actor_.Stop(); }

 private:
  Outcome LookAndAct(const std::string& key,
                     const std::shared_ptr<const objects::CustomResource>& stored, uint64_t id,
                     Memory& memory);
  // True if the job's pod group is known, as far as it can be; `gang` is the job's.
  bool SeesPodGroup(const api::TFJob& job, const policy::Gang& gang);
  // Returns how long the plan can wait, since it only brings counts up to date; nullopt if it must
  // be carried out now.
  std::optional<Duration> CanWait(const Look& look, const Decision& decision, Memory& memory);
  // Returns the time until a pod may turn out to hang on a node that is gone.
  std::optional<Duration> ObserveNodes(Time now, policy::Snapshot& snapshot);
  Decision Decide(const Look& look, const Status& admitted, Time now);
  std::shared_ptr<Memory> MemoryOf(const std::string& key, const std::string& uid);
  void Forget(const std::string& key);
  // Reads the job from the server and notes it in the cache.
  Status Reread(const std::string& key, const std::string& known_version, Memory& memory);
  // Determines the outcome of a status write without an answer, or of one that the server may
  // have received twice.
  void SettleUnanswered(const objects::CustomResource& found, Memory& memory);
  // Reads those of our creates and deletes that the watch should have shown by now.
  Status Confirm(const std::string& key);

  client::Client& client_;
  Cache& cache_;
  Clock& clock_;
  Observer& observer_;
  NativeApi& native_api_;
  const WatchPodGroups watch_pod_groups_;
  const Settings settings_;
  std::atomic<uint64_t> last_id_ = 0;
  Actor actor_;
  Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Memory>> memories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::control
