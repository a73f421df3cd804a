#include "operator/client/client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/client/faults.h"
#include "operator/client/forwarding_client.h"
#include "operator/local/store/store.h"
#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"

namespace tfjob::client {
namespace {

TEST(Client, DecodesPodsAndServicesCompactlyAndOtherKindsWhole) {
  const Json object = {{"apiVersion", "v1"},
                       {"kind", "X"},
                       {"metadata", {{"name", "a"}, {"namespace", "ns"}}},
                       {"spec", {{"nodeName", "n"}}}};
  auto pod = Decode(Kind::kPod, object);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(std::get<std::shared_ptr<const objects::Pod>>(*pod)->node_name, "n");
  auto service = Decode(Kind::kService, object);
  ASSERT_TRUE(service.ok()) << service.status();
  EXPECT_EQ(MetadataOf(*service).name, "a");
  auto other = Decode(Kind::kPodGroup, object);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(*std::get<std::shared_ptr<const objects::CustomResource>>(*other)->object, object);
}

TEST(Client, SelectsByEqualityOfEveryLabel) {
  objects::ObjectMeta metadata;
  metadata.labels = {{"app", "x"}, {"tier", "y"}};
  EXPECT_TRUE(Matches({}, metadata));
  EXPECT_TRUE(Matches({{"app", "x"}}, metadata));
  EXPECT_FALSE(Matches({{"app", "x"}, {"tier", "z"}}, metadata));
  EXPECT_FALSE(Matches({{"other", ""}}, metadata));
}

TEST(Client, PrintsKeysForPeople) {
  EXPECT_EQ(ToString(Key{Kind::kTFJob, "ns", "job"}), "TFJob ns/job");
  EXPECT_EQ(ToString(Key{Kind::kNode, "", "node-1"}), "Node node-1");
}

class NullSink : public WatchSink {
  void OnReplaced(std::vector<Object>) override {}
  void OnUpserted(Object) override {}
  void OnDeleted(Object) override {}
};

// A ForwardingClient must pass every call to the inner client once and return its result.
TEST(ForwardingClient, PassesEveryCallOn) {
  store::Store store;
  FaultyClient inner(store);
  ForwardingClient client(inner);
  const Key key{Kind::kPod, "ns", "a"};
  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", {{"name", "a"}, {"namespace", "ns"}}},
                    {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
  NullSink sink;
  EXPECT_TRUE(client.Create(Kind::kPod, pod).ok());
  EXPECT_EQ(MetadataOf(*client.Get(key)).name, "a");
  EXPECT_EQ((*client.GetJson(key))["metadata"]["name"], "a");
  EXPECT_EQ(client.List(Kind::kPod, "ns", {})->size(), 1u);
  EXPECT_TRUE(client.Update(Kind::kPod, pod).ok());
  EXPECT_TRUE(client.UpdateStatus(Kind::kPod, pod).ok());
  EXPECT_TRUE(client.Patch(key, Json::object()).ok());
  EXPECT_TRUE(client.Subscribe(Kind::kPod, "ns", {}, sink).ok());
  EXPECT_TRUE(client.Delete(key, {}).ok());
  std::vector<Verb> verbs;
  for (const Call& call : inner.Calls()) verbs.push_back(call.verb);
  EXPECT_EQ(verbs,
            (std::vector<Verb>{Verb::kCreate, Verb::kGet, Verb::kGet, Verb::kList, Verb::kUpdate,
                               Verb::kUpdateStatus, Verb::kPatch, Verb::kWatch, Verb::kDelete}));
}

}  // namespace
}  // namespace tfjob::client
