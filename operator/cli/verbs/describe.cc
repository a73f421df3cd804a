// tfjob describe: shows jobs with their replicas, pods, conditions and events, and why they are
// waiting.
#include <ostream>

#include "operator/cli/verbs/description.h"
#include "operator/cli/verbs/job_flags.h"
#include "operator/cli/verbs/verbs.h"

namespace tfjob::cli {
namespace {

class DescribeVerb : public ClusterVerb {
 public:
  DescribeVerb()
      : ClusterVerb("describe", "Show TFJobs with their pods and events, and why they wait") {}

  void AddFlags(FlagSet& flags) override { AddJobNames(flags, names_); }

  int RunOn(const VerbContext& context) override {
    bool first = true;
    return ForEachJob(context, names_, [&](const StoredJob& job) -> Status {
      ASSIGN_OR_RETURN(const JobFacts facts, CollectFacts(context, job));
      context.console.out << (first ? "" : "\n\n") << Describe(facts);
      first = false;
      return OkStatus();
    });
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<ClusterVerb> MakeDescribeVerb() {
  return std::make_unique<DescribeVerb>();
}

}  // namespace tfjob::cli
