// Tests how the manager handles objects that are being deleted while a watch is behind.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/control/test_manager.h"

namespace tfjob::control {
namespace {

using objects::Kind;

class ManagerDeletionTest : public ::testing::Test, public SteppedManager<> {
 protected:
  ManagerDeletionTest() {
    options.settings.is_node_lost = [](const std::string&) { return true; };
    Start();
  }

  // Delivers all pending watch events.
  void Settle() {
    for (int i = 0; i < 3; ++i) {
      store.Deliver();
      Step();
    }
  }
  int Count(client::Verb verb, const client::Key& key) {
    return SteppedManager::Count(
        [&](const client::Call& call) { return call.verb == verb && call.key == key; });
  }
};

// With `kubectl delete --cascade=orphan`, the garbage collector removes the job from its services'
// owners before the job is gone. The watch of the services may be ahead of the watch of the jobs.
TEST_F(ManagerDeletionTest, DoesNotAdoptTheServicesOfAJobThatIsBeingDeleted) {
  const client::Key job{Kind::kTFJob, "ns", "a"}, service{Kind::kService, "ns", "a-worker-0"};
  Json object = fixtures::Job("a", 2);
  object["metadata"]["finalizers"] = {"orphan"};
  Create(object);
  Settle();
  ASSERT_TRUE(store.Patch(service, {{"metadata", {{"ownerReferences", nullptr}}}}).ok());
  store.Deliver();
  ASSERT_TRUE(store.Delete(job, {}).ok());
  Step();
  EXPECT_FALSE(store.GetJson(service)->at("metadata").contains("ownerReferences"));
}

// The finalizers of a pod keep it even if it is deleted with grace period 0. Another call fails, so
// the job is reconciled again before the watch reports the deletion.
TEST_F(ManagerDeletionTest, DoesNotReplaceAForceDeletedPodThatIsStillThere) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  const client::Key first{Kind::kPod, "ns", "a-worker-0"}, second{Kind::kPod, "ns", "a-worker-1"};
  Json object = fixtures::Job("a", 2);
  object["metadata"]["annotations"] = {{"tfjob.dev/force-delete-lost-pods", "true"}};
  object["spec"]["tfReplicaSpecs"]["Worker"]["template"]["metadata"]["finalizers"] = {"a/hold"};
  Create(object);
  Settle();
  for (const client::Key& pod : {first, second}) ASSERT_TRUE(store.Delete(pod, {}).ok());
  Settle();
  client.Inject({.matches =
                     [&](const client::Call& call) {
                       return call.verb == client::Verb::kDelete && call.key == second;
                     },
                 .error = Unavailable("busy")});
  clock.Advance(2min);  // the pods count as lost now
  Step();
  EXPECT_EQ(Count(client::Verb::kDelete, first), 1);
  for (int i = 0; i < 5; ++i) {
    clock.Advance(2s);
    Step();
  }
  EXPECT_EQ(Count(client::Verb::kDelete, second), 2);
  EXPECT_EQ(Count(client::Verb::kCreate, first), 1);
  Settle();
  const int64_t deletes = Count(client::Verb::kDelete, first);
  clock.Advance(1h);
  Settle();
  EXPECT_EQ(Count(client::Verb::kDelete, first), deletes);
}

}  // namespace
}  // namespace tfjob::control
