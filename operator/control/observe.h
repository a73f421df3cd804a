// Observes a job: what the watches show of it, what our own calls have changed meanwhile, and what
// only the server can answer.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "operator/control/outcome.h"
#include "operator/control/settings.h"
#include "operator/control/tools.h"

namespace tfjob::objects {
struct CustomResource;
}

namespace tfjob::control {

struct Memory;
struct Observation;

// Thread-safe; one worker at a time per job.
class JobReader {
 public:
  // `settings` must outlive this.
  JobReader(const Tools& tools, const Settings& settings) : tools_(tools), settings_(settings) {}

  // Returns an outcome if the reconcile ends here: kReadAgain if the newest known version of the
  // job is in doubt, kDone if its pod group is not known yet, kFailed if the server could not be
  // asked. Brings memory.history up to date; the observation refers to it.
  std::variant<Observation, Outcome> Observe(const std::string& key, uint64_t id,
                                             const objects::CustomResource& stored, Memory& memory);

  // Reads the job from the server into the cache. `known_version` is the newest one in the cache.
  Outcome ReadJob(const std::string& key, const std::string& known_version, Memory& memory);

 private:
  // Reads those of our creates and deletes that the watch should have shown by now.
  Status ConfirmOwnWrites(const std::string& key);
  // Returns "" for a job without a gang of Kubernetes' own.
  StatusOr<std::string> NativeVersionFor(const policy::Gang& gang);
  // Returns true if the job's pod group is known, as far as it can be; `gang` is the job's.
  bool SeesPodGroup(const api::TFJob& job, const policy::Gang& gang);
  void ObserveNodes(Observation& observation);
  // Determines the outcome of a status write without an answer, or of one that the server may
  // have received twice.
  void SettleUnanswered(const objects::CustomResource& found, Memory& memory);

  const Tools tools_;
  const Settings& settings_;
};

}  // namespace tfjob::control
