// Collects the facts about a job that `describe` shows.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/cli/verbs/events.h"
#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

// Describes how a pod's `tensorflow` container ended.
struct LastExit {
  int64_t code = 0;
  std::string reason;
  Time at;
};

struct JobFacts {
  StoredJob stored;
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  // How the `tensorflow` container ended before its last restart, by pod, for at most 20 pods.
  std::map<std::string, LastExit> last_exits;
  std::vector<EventLine> events;  // about the job and its pods, newest last
  std::string no_events;          // why the events could not be read; "" if they were
  Time now;

  const api::TFJob& job() const { return stored.job; }
  // Returns how the pod's container `tensorflow` last ended; nullopt if it has never ended, or if
  // it is unknown how it ended.
  std::optional<LastExit> ExitOf(const objects::Pod& pod) const;
};

// Collects the facts from the server. Events that cannot be read are not an error.
StatusOr<JobFacts> CollectFacts(const VerbContext& context, const StoredJob& job);

}  // namespace tfjob::cli
