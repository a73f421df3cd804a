// Lists the verbs that work with the TFJobs of a cluster. Each function is defined in the file of
// its verb.
#pragma once

#include <memory>
#include <vector>

#include "operator/cli/verbs/verb.h"

namespace tfjob::cli {

std::unique_ptr<ClusterVerb> MakeGetVerb();
std::unique_ptr<ClusterVerb> MakeDescribeVerb();
std::unique_ptr<ClusterVerb> MakeTopVerb();
std::unique_ptr<ClusterVerb> MakeLogsVerb();
std::unique_ptr<ClusterVerb> MakeScaleVerb();
std::unique_ptr<ClusterVerb> MakeSuspendVerb();
std::unique_ptr<ClusterVerb> MakeResumeVerb();
std::unique_ptr<ClusterVerb> MakeRestartVerb();
std::unique_ptr<ClusterVerb> MakeWaitVerb();

// Appends all of these verbs, in the order in which the help lists them.
inline void AddClusterVerbs(std::vector<std::unique_ptr<Verb>>& verbs) {
  for (const auto make : {MakeGetVerb, MakeDescribeVerb, MakeTopVerb, MakeLogsVerb, MakeScaleVerb,
                          MakeSuspendVerb, MakeResumeVerb, MakeRestartVerb, MakeWaitVerb}) {
    verbs.push_back(make());
  }
}

}  // namespace tfjob::cli
