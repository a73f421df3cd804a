// The part of the command line that is about a cluster: its verbs, and the flags that say which
// cluster.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/cli/verbs/command.h"

namespace CLI {
class App;
}

namespace tfjob::cli {

// Adds the verbs to a parser and, once that has parsed, reads what they got.
class ClusterFlagReader {
 public:
  // `app` outlives it.
  explicit ClusterFlagReader(CLI::App& app);
  ~ClusterFlagReader();

  // The parsed verb; nothing when it is none about a cluster. InvalidArgument for values that no
  // verb takes, and for cluster flags before a verb that is about none.
  StatusOr<std::optional<ClusterCommand>> Read() const;

 private:
  struct Texts;

  CLI::App& app_;
  const std::unique_ptr<Texts> texts_;
};

// Whether its first arguments are names of TFJobs.
bool TakesJobNames(const std::string& verb);

}  // namespace tfjob::cli
