// A job's key → what happened. Reads as a list: fetch, admit, look, decide, render, plan, carry out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "operator/client/client.h"
#include "operator/control/act.h"
#include "operator/control/cache.h"
#include "operator/control/memory.h"
#include "operator/policy/options.h"
#include "operator/policy/verdict.h"
#include "operator/render/render.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {

// What decisions depend on beside the cluster.
struct Settings {
  policy::Options policy;
  render::Options render;
  render::AddressScheme address;  // required
  // Names of nodes that are not Ready or gone; nothing (or no function): nodes are not observed.
  std::function<std::optional<std::set<std::string>>()> lost_nodes;
};

struct Outcome {
  Status status;                        // not OK: again after a back-off
  std::optional<Duration> again_after;  // look again then, if nothing happens before
};

// Thread-safe; a key by one worker at a time.
class Reconciler {
 public:
  Reconciler(client::Client& client, Cache& cache, Clock& clock, ThreadPool& pool,
             Settings settings);

  Outcome Reconcile(const std::string& key);

 private:
  struct Decision {
    policy::Verdict verdict;
    render::Desired desired;
  };

  Outcome LookAndAct(const std::string& key,
                     const std::shared_ptr<const objects::CustomResource>& stored, Memory& memory);
  Decision Decide(const Look& look, const Status& admitted, Time now);
  std::shared_ptr<Memory> MemoryOf(const std::string& key, const std::string& uid);
  void Forget(const std::string& key);
  // Reads the job from the server and notes it in the cache.
  Status Reread(const std::string& key, const std::string& known_version);
  // What became of a status write without an answer.
  Status SettleUnanswered(const std::string& key, Memory& memory);
  // Reads those of our creates that the watch should have shown by now.
  Status ConfirmCreates(const std::string& key);

  client::Client& client_;
  Cache& cache_;
  Clock& clock_;
  const Settings settings_;
  Actor actor_;
  Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Memory>> memories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::control
