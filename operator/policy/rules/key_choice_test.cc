#include "operator/policy/rules/key_choice.h"

#include <gtest/gtest.h>

namespace tfjob::policy {
namespace {

using enum ReplicaState;

// Describes a replica's pod. `key_id` is the id of its key, such as "1.a", or "" for a pod without
// a key.
struct Living {
  std::string key_id;
  ReplicaState state = kActive;
};

KeyChoice Choose(const std::vector<Living>& pods, const std::vector<std::string>& key_ids) {
  std::vector<objects::Pod> storage(pods.size());
  ReplicaGroup group;
  for (size_t i = 0; i < pods.size(); ++i) {
    storage[i].key_id = pods[i].key_id;
    group.replicas.push_back({.pod = &storage[i], .state = pods[i].state});
  }
  group.replicas.push_back({});  // the slot of the new pod
  Replicas replicas;
  replicas.groups.push_back(std::move(group));
  return ChooseKey(replicas, key_ids);
}

struct ChoiceCase {
  const char* what;
  std::vector<Living> pods;
  std::vector<std::string> key_ids;
  KeyChoice expected;
};

TEST(KeyChoice, FollowsTheLivingPods) {
  const std::vector<std::string> kBoth = {"1.a", "2.b"};
  const ChoiceCase kCases[] = {
      {"a new job takes the newest key", {}, kBoth, {"2.b", ""}},
      {"a new job without an operator's key", {}, {}, {"", ""}},
      {"a replacement keeps the older key", {{"1.a"}, {"1.a", kPending}}, kBoth, {"1.a", ""}},
      {"a job from before the upgrade", {{""}, {""}}, kBoth, {"", ""}},
      {"a job without a key, and no keys", {{""}}, {}, {"", ""}},
      {"most pods decide", {{"2.b"}, {"1.a"}, {"1.a"}}, kBoth, {"1.a", ""}},
      {"the first of equally many decides", {{"2.b"}, {"1.a"}}, kBoth, {"2.b", ""}},
      {"most pods have none", {{"2.b"}, {""}, {""}}, kBoth, {"", ""}},
      {"the key is gone", {{"1.a"}}, {"2.b"}, {"2.b", "1.a"}},
      {"all keys are gone", {{"1.a"}}, {}, {"", "1.a"}},
      {"another secret under the same name", {{"1.a"}}, {"1.c"}, {"1.c", "1.a"}}};
  for (const ChoiceCase& test : kCases) {
    EXPECT_EQ(Choose(test.pods, test.key_ids), test.expected) << test.what;
  }
}

TEST(KeyChoice, OnlyPodsThatStayCount) {
  for (const ReplicaState state : {kMissing, kCompleted, kSucceeded, kFailed, kRetryable,
                                   kDisrupted, kReplacing, kTerminating, kOutdated}) {
    EXPECT_EQ(Choose({{"1.a", state}}, {"1.a", "2.b"}), (KeyChoice{"2.b", ""}))
        << static_cast<int>(state);
  }
}

}  // namespace
}  // namespace tfjob::policy
