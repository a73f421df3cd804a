#include "operator/cli/verbs/describe.h"

#include <ostream>

#include "operator/cli/verbs/description.h"

namespace tfjob::cli {

int DescribeJobs(const DescribeOptions& options, const Surroundings& around) {
  bool first = true;
  return ForEachJob(around, options.names, [&](const StoredJob& job) -> Status {
    ASSIGN_OR_RETURN(const JobFacts facts, CollectFacts(around, job));
    around.console.out << (first ? "" : "\n\n") << Describe(facts);
    first = false;
    return OkStatus();
  });
}

}  // namespace tfjob::cli
