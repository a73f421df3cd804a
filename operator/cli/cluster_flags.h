// Defines the flags that select a cluster. They may precede or follow the verb.
#pragma once

#include <string>

#include "operator/cli/flags/flag_set.h"
#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

class ClusterFlagReader {
 public:
  // Adds the flags to `flags`. Parsing stores their values in this object. If a flag is given both
  // before and after the verb, the value after the verb wins.
  void AddTo(FlagSet& flags);
  // Returns the parsed values, or InvalidArgument if --request-timeout is malformed.
  StatusOr<ClusterFlags> Read() const;

 private:
  ClusterFlags flags_;
  std::string request_timeout_;
};

// Returns InvalidArgument if `before`, the flags before the verb, contains a cluster flag. Call
// this only for a `verb` that uses no cluster.
Status CheckNoClusterFlags(const FlagSet& before, const std::string& verb);

// Stores the value of a flag in `cluster`, for completion. Ignores flags that completion does
// not need.
void SetClusterFlag(const Flag& flag, const std::string& value, ClusterFlags& cluster);

}  // namespace tfjob::cli
