// Observes a job: combines the reports of the watches, the later writes of the operator, and
// answers from the server.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "operator/control/dependencies.h"
#include "operator/control/outcome.h"
#include "operator/control/settings.h"

namespace tfjob::objects {
struct CustomResource;
}

namespace tfjob::control {

struct Memory;
struct Observation;

// Observes jobs. Thread-safe, but only one worker at a time may observe a job.
class JobReader {
 public:
  // `settings` must outlive this object.
  JobReader(const Dependencies& dependencies, const Settings& settings)
      : dependencies_(dependencies), settings_(settings) {}

  // Returns the observation, or an outcome if the reconcile must stop here. The outcome is:
  //  - kReadAgain if a status write was not answered, or the newest known version of the job is in
  //    doubt for another reason;
  //  - kDone if the job's pod group or NetworkPolicy is not known yet;
  //  - kFailed if the API version of a native gang is needed but cannot be determined.
  // Updates memory.history, which the observation refers to.
  std::variant<Observation, Outcome> Observe(const std::string& key, uint64_t id,
                                             const objects::CustomResource& stored, Memory& memory);

  // Reads the job from the server into the cache. `known_version` is the newest version in
  // the cache.
  Outcome ReadJob(const std::string& key, const std::string& known_version, Memory& memory);

 private:
  // Reads back each object that the operator has created, changed or deleted and whose change the
  // watch should have reported by now but has not. Returns false if an object could not be read.
  // The reconcile can still continue, because the cache keeps the operator's own writes.
  bool ConfirmOwnWrites(const std::string& key);
  // Read objects of one kind, one by one or with one list of the job's objects.
  Status ReadEach(const std::string& key, const std::vector<client::Key>& objects);
  Status ReadList(const std::string& key, const std::vector<client::Key>& objects);
  // Returns the API version in which the server serves its own Workloads; "" if the gang uses
  // another scheduler.
  StatusOr<std::string> NativeVersionFor(const policy::Gang& gang);
  // Returns true if the job's pod group is known or the time to wait for it has run out. `gang` is
  // the job's gang.
  bool SeesPodGroup(const api::TFJob& job, const policy::Gang& gang);
  // Returns true if the job's NetworkPolicy is known or the time to wait for it has run out.
  bool SeesNetworkPolicy(const api::TFJob& job);
  void ObserveNodes(Observation& observation);
  // Finds out whether a status write took effect if its response was lost or it may have been sent
  // twice. If so, queues the events of that write.
  void SettleUnanswered(const objects::CustomResource& found, Memory& memory);

  const Dependencies dependencies_;
  const Settings& settings_;
};

}  // namespace tfjob::control
