// What `describe` knows of one job at one moment: a value.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/cli/verbs/events.h"
#include "operator/cli/verbs/stored_job.h"

namespace tfjob::cli {

// How the container `tensorflow` ended before its last restart.
struct LastExit {
  int64_t code = 0;
  std::string reason;
  Time at;
};

struct JobFacts {
  StoredJob stored;
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  std::map<std::string, LastExit> last_exits;  // by pod name
  std::vector<EventLine> events;               // of the job and its pods, the newest last
  std::string no_events;                       // why the events could not be read
  Time now;

  const api::TFJob& job() const { return stored.job; }
  // Nothing when it never ended.
  std::optional<LastExit> ExitOf(const objects::Pod& pod) const;
};

// Asks the server for all of it. Events that may not be read are no error.
StatusOr<JobFacts> CollectFacts(const Surroundings& around, const StoredJob& job);

}  // namespace tfjob::cli
