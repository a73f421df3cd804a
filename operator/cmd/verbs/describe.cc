#include "operator/cmd/verbs/describe.h"

#include <ostream>

#include "operator/cmd/verbs/description.h"

namespace tfjob::cmd {

int DescribeJobs(const DescribeOptions& options, const Surroundings& around) {
  bool first = true;
  return ForEachJob(around, options.names, [&](const StoredJob& job) -> Status {
    ASSIGN_OR_RETURN(const JobFacts facts, CollectFacts(around, job));
    around.console.out << (first ? "" : "\n\n") << Describe(facts);
    first = false;
    return OkStatus();
  });
}

}  // namespace tfjob::cmd
