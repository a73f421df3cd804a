// Reconciles a job, given its key, in three steps: observe, decide, act.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "operator/control/dependencies.h"
#include "operator/control/outcome.h"
#include "operator/control/settings.h"
#include "runtime/base/mutex.h"

namespace tfjob::objects {
struct CustomResource;
}

namespace tfjob::control {

class Actor;
class JobReader;
struct Memory;
struct ActContext;

// Reconciles jobs. Thread-safe, but only one worker at a time may reconcile a key.
class Reconciler {
 public:
  Reconciler(const Dependencies& dependencies, Settings settings);
  ~Reconciler();

  // Reconciles the job. If another writer has changed the job in the meantime, starts over; makes
  // at most kConflictTries attempts.
  Outcome Reconcile(const std::string& key);

  // Makes Reconcile stop creating objects after the calls in progress.
  void Stop();

 private:
  Outcome ReconcileOnce(const std::string& key, uint64_t id, const objects::CustomResource& stored,
                        Memory& memory);
  Outcome Act(const ActContext& context);
  // Returns how long the plan can wait if it only updates counts; nullopt if it must be executed
  // now.
  std::optional<Duration> TimeToWait(const ActContext& context);
  std::shared_ptr<Memory> MemoryOf(const std::string& key, const std::string& uid);
  void Forget(const std::string& key);

  const Dependencies dependencies_;
  const Settings settings_;
  const std::unique_ptr<JobReader> reader_;
  const std::unique_ptr<Actor> actor_;
  std::atomic<uint64_t> last_id_ = 0;
  Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Memory>> memories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::control
