// The flags that select a cluster. They may stand before the verb or after it.
#pragma once

#include <string>

#include "operator/cli/flags/flag_set.h"
#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

class ClusterFlagReader {
 public:
  // Adds the flags to `flags`, which write to this reader. If a flag is given to several sets, the
  // value behind the verb counts.
  void AddTo(FlagSet& flags);
  // Returns the parsed values. InvalidArgument for a wrong duration.
  StatusOr<ClusterFlags> Read() const;

 private:
  ClusterFlags flags_;
  std::string request_timeout_;
};

// Returns InvalidArgument if `before`, the flags before the verb, contain a flag of a cluster.
Status CheckNoClusterFlags(const FlagSet& before, const std::string& verb);

// Sets the value of one flag as completion reads it. Ignores flags that completion does not need.
void SetClusterFlag(const Flag& flag, const std::string& value, ClusterFlags& cluster);

}  // namespace tfjob::cli
