#include "operator/client/client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace tfjob::client
