// The part of the command line that concerns a cluster: its verbs, and the flags that select
// the cluster.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/cli/verbs/command.h"

namespace CLI {
class App;
}

namespace tfjob::cli {

// Adds the cluster verbs to a parser and reads their values after parsing.
class ClusterFlagReader {
 public:
  // `app` must outlive the reader.
  explicit ClusterFlagReader(CLI::App& app);
  ~ClusterFlagReader();

  // Returns the parsed verb; nullopt if it does not concern a cluster. InvalidArgument for values
  // that no verb takes, and for cluster flags before a verb that does not concern a cluster.
  StatusOr<std::optional<ClusterCommand>> Read() const;

 private:
  struct Texts;

  CLI::App& app_;
  const std::unique_ptr<Texts> texts_;
};

// Returns whether the first arguments of the verb are names of TFJobs.
bool TakesJobNames(const std::string& verb);

}  // namespace tfjob::cli
