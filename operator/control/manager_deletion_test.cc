// Tests the manager on objects that are being deleted while a watch is behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/client/faults.h"
#include "operator/control/manager.h"
#include "operator/control/test_fixtures.h"
#include "operator/local/store/store.h"
#include "runtime/base/fake_clock.h"
#include "runtime/base/log.h"

namespace tfjob::control {
namespace {

using objects::Kind;

class ManagerDeletionTest : public ::testing::Test {
 protected:
  ManagerDeletionTest() : store_(fixtures::DeliveredByHand(clock_)), client_(store_) {
    ConfigureLogging(LogLevel::kError, LogFormat::kText);
    ManagerOptions options;
    options.workers = 0;
    options.parallel_writes = 0;
    options.clock = &clock_;
    options.settings.address = render::ClusterDns("");
    options.settings.is_node_lost = [](const std::string&) { return true; };
    manager_ = *Manager::Start(client_, options);
  }

  void Step() {
    while (manager_->Step()) {
    }
  }
  // Lets the watches catch up.
  void Settle() {
    for (int i = 0; i < 3; ++i) {
      store_.Deliver();
      Step();
    }
  }
  int64_t Count(client::Verb verb, const client::Key& key) {
    return std::ranges::count_if(client_.Calls(), [&](const client::Call& call) {
      return call.verb == verb && call.key == key;
    });
  }

  FakeClock clock_{*ParseTime("2026-11-21T09:30:00Z")};
  store::Store store_;
  client::FaultyClient client_;
  std::unique_ptr<Manager> manager_;
};

// With `kubectl delete --cascade=orphan`, the garbage collector removes the job from its services'
// owners before the job is gone. The watch of the services may be ahead of that of the jobs.
TEST_F(ManagerDeletionTest, DoesNotAdoptTheServicesOfAJobThatIsBeingDeleted) {
  const client::Key job{Kind::kTFJob, "ns", "a"}, service{Kind::kService, "ns", "a-worker-0"};
  Json object = fixtures::Job("a", 2);
  object["metadata"]["finalizers"] = {"orphan"};
  ASSERT_TRUE(store_.Create(Kind::kTFJob, object).ok());
  Settle();
  ASSERT_TRUE(store_.Patch(service, {{"metadata", {{"ownerReferences", nullptr}}}}).ok());
  store_.Deliver();
  ASSERT_TRUE(store_.Delete(job, {}).ok());
  Step();
  EXPECT_FALSE(store_.GetJson(service)->at("metadata").contains("ownerReferences"));
}

// The finalizers of a pod keep it even if it is deleted with grace period 0. Another call fails, so
// the job is reconciled again before the watch reports the deletion.
TEST_F(ManagerDeletionTest, DoesNotReplaceAForceDeletedPodThatIsStillThere) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  const client::Key first{Kind::kPod, "ns", "a-worker-0"}, second{Kind::kPod, "ns", "a-worker-1"};
  Json object = fixtures::Job("a", 2);
  object["metadata"]["annotations"] = {{"tfjob.dev/force-delete-lost-pods", "true"}};
  object["spec"]["tfReplicaSpecs"]["Worker"]["template"]["metadata"]["finalizers"] = {"a/hold"};
  ASSERT_TRUE(store_.Create(Kind::kTFJob, object).ok());
  Settle();
  for (const client::Key& pod : {first, second}) ASSERT_TRUE(store_.Delete(pod, {}).ok());
  Settle();
  client_.Inject({.matches =
                      [&](const client::Call& call) {
                        return call.verb == client::Verb::kDelete && call.key == second;
                      },
                  .error = Unavailable("busy")});
  clock_.Advance(2min);  // the pods count as lost now
  Step();
  EXPECT_EQ(Count(client::Verb::kDelete, first), 1);
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(2s);
    Step();
  }
  EXPECT_EQ(Count(client::Verb::kDelete, second), 2);
  EXPECT_EQ(Count(client::Verb::kCreate, first), 1);
  Settle();
  const int64_t deletes = Count(client::Verb::kDelete, first);
  clock_.Advance(1h);
  Settle();
  EXPECT_EQ(Count(client::Verb::kDelete, first), deletes);
}

}  // namespace
}  // namespace tfjob::control
