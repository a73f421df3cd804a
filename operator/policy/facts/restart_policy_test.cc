#include "operator/policy/facts/restart_policy.h"

#include <gtest/gtest.h>

namespace tfjob::policy {
namespace {

using enum api::RestartPolicy;

// Checks every field of every policy's row.
TEST(RestartBehavior, AnswersAllQuestions) {
  const struct {
    api::RestartPolicy policy;
    bool restarts, code_decides, counts_containers, completes;
    const char* pod_word;
  } kCases[] = {
      {kNever, false, false, false, true, "Never"},
      {kAlways, true, false, true, false, "Always"},
      {kOnFailure, true, false, true, true, "OnFailure"},
      {kExitCode, true, true, true, true, "Never"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(api::Name(c.policy));
    const RestartBehavior& behavior = BehaviorOf(c.policy);
    EXPECT_EQ(behavior.policy, c.policy);
    EXPECT_EQ(behavior.restarts_replicas, c.restarts);
    EXPECT_EQ(behavior.exit_code_decides, c.code_decides);
    EXPECT_EQ(behavior.counts_container_restarts, c.counts_containers);
    EXPECT_EQ(behavior.completes_for_good, c.completes);
    EXPECT_EQ(api::Name(behavior.pod_policy), c.pod_word);
  }
}

}  // namespace
}  // namespace tfjob::policy
