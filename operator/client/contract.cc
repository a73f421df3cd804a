#include "operator/client/contract.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"

namespace tfjob::client {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ContractTest);

std::string ContractTargetName(const ::testing::TestParamInfo<ContractTarget>& target) {
  return target.param.name;
}

Json ContractTest::Job(const std::string& name) {
  Json container = {{"name", "tensorflow"}, {"image", "trainer"}};
  Json pod_template = {{"spec", {{"containers", Json::array({container})}}}};
  return {
      {"apiVersion", "kubeflow.org/v1"},
      {"kind", "TFJob"},
      {"metadata", {{"name", name}, {"namespace", world_->name_space()}}},
      {"spec", {{"tfReplicaSpecs", {{"Worker", {{"replicas", 1}, {"template", pod_template}}}}}}}};
}

Json ContractTest::Pod(const std::string& name, const std::string& app, const std::string& node) {
  Json container = {{"name", "tensorflow"}, {"image", "trainer"}};
  Json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata",
               {{"name", name},
                {"namespace", world_->name_space()},
                {"labels", {{"app", app}}},
                {"annotations", {{"note", "kept"}, {"tfjob.dev/key-id", "1.0a"}}}}},
              {"spec", {{"containers", Json::array({container})}}}};
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  return pod;
}

Json ContractTest::Service(const std::string& name) {
  Json port = {{"name", "tfjob-port"}, {"port", 2222}, {"protocol", "TCP"}};
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", name}, {"namespace", world_->name_space()}}},
          {"spec",
           {{"clusterIP", "None"}, {"selector", {{"app", "x"}}}, {"ports", Json::array({port})}}}};
}

Json ContractTest::OwnedBy(Json object, const Object& owner) {
  const objects::ObjectMeta& metadata = MetadataOf(owner);
  object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "kubeflow.org/v1"},
                                                        {"kind", "TFJob"},
                                                        {"name", metadata.name},
                                                        {"uid", metadata.uid},
                                                        {"controller", true}}});
  return object;
}

Object ContractTest::MustCreate(Kind kind, const Json& object) {
  StatusOr<Object> created = client().Create(kind, object);
  EXPECT_TRUE(created.ok()) << created.status();
  return created.value_or(Object());
}

Json ContractTest::MustGetJson(Kind kind, const std::string& name) {
  StatusOr<Json> object = client().GetJson(KeyOf(kind, name));
  EXPECT_TRUE(object.ok()) << object.status();
  return object.value_or(Json::object());
}

void ContractTest::Eventually(const std::function<bool()>& condition, const std::string& what) {
  const auto deadline = std::chrono::steady_clock::now() + world_->patience();
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waited in vain: " << what;
    world_->Pump();
  }
}

TEST_P(ContractTest, ACreatedObjectIsStampedAndReadsBack) {
  const Object created = MustCreate(Kind::kPod, Pod("a", "x"));
  const objects::ObjectMeta& metadata = MetadataOf(created);
  EXPECT_FALSE(metadata.uid.empty());
  EXPECT_FALSE(metadata.resource_version.empty());
  EXPECT_NE(metadata.creation_timestamp, Time());

  auto got = client().Get(KeyOf(Kind::kPod, "a"));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(MetadataOf(*got).uid, metadata.uid);
  EXPECT_EQ(std::get<std::shared_ptr<const objects::Pod>>(*got)->phase,
            objects::PodPhase::kPending);
  for (const Object& object : {created, *got}) {
    EXPECT_EQ(std::get<std::shared_ptr<const objects::Pod>>(object)->key_id, "1.0a");
  }

  const Json whole = MustGetJson(Kind::kPod, "a");
  EXPECT_EQ(whole["metadata"]["annotations"]["note"], "kept");
  EXPECT_EQ(whole["spec"]["containers"][0]["image"], "trainer");
  EXPECT_EQ(whole["kind"], "Pod");
}

TEST_P(ContractTest, ANameIsTakenOnce) {
  MustCreate(Kind::kService, Service("a"));
  EXPECT_EQ(client().Create(Kind::kService, Service("a")).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(client().Get(KeyOf(Kind::kService, "b")).status().code(), StatusCode::kNotFound);
}

TEST_P(ContractTest, BadNamesAndEmptyPodsAreRefused) {
  EXPECT_EQ(client().Create(Kind::kService, Service("Not-Lower")).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(client().Create(Kind::kService, Service(std::string(64, 'a'))).status().code(),
            StatusCode::kInvalidArgument);
  Json pod = Pod("a", "not a label value");
  EXPECT_EQ(client().Create(Kind::kPod, pod).status().code(), StatusCode::kInvalidArgument);
  pod = Pod("a", "x");
  pod["spec"]["containers"] = Json::array();
  EXPECT_EQ(client().Create(Kind::kPod, pod).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(ContractTest, ListsByNamespaceAndLabelsSortedByName) {
  MustCreate(Kind::kPod, Pod("c", "x"));
  MustCreate(Kind::kPod, Pod("a", "x"));
  MustCreate(Kind::kPod, Pod("b", "y"));
  auto list = client().List(Kind::kPod, world_->name_space(), {{"app", "x"}});
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ(MetadataOf((*list)[0]).name, "a");
  EXPECT_EQ(MetadataOf((*list)[1]).name, "c");
  EXPECT_EQ(client().List(Kind::kPod, world_->name_space(), {})->size(), 3u);
  EXPECT_EQ(client().List(Kind::kPod, "no-such-namespace", {})->size(), 0u);
}

TEST_P(ContractTest, AStaleWriteIsAborted) {
  MustCreate(Kind::kTFJob, Job("a"));
  const Json first = MustGetJson(Kind::kTFJob, "a");
  Json changed = first;
  changed["metadata"]["labels"]["k"] = "v";
  ASSERT_TRUE(client().Update(Kind::kTFJob, changed).ok());
  EXPECT_EQ(client().Update(Kind::kTFJob, changed).status().code(), StatusCode::kAborted);
  Json status = first;
  status["status"]["attempt"] = 1;
  EXPECT_EQ(client().UpdateStatus(Kind::kTFJob, status).status().code(), StatusCode::kAborted);
  const Json patch = {
      {"metadata",
       {{"resourceVersion", first["metadata"]["resourceVersion"]}, {"labels", {{"k", "w"}}}}}};
  EXPECT_EQ(client().Patch(KeyOf(Kind::kTFJob, "a"), patch).status().code(), StatusCode::kAborted);
  EXPECT_EQ(MustGetJson(Kind::kTFJob, "a")["metadata"]["labels"]["k"], "v");
}

TEST_P(ContractTest, AWriteToAnotherObjectOfThatNameIsAborted) {
  const Object old = MustCreate(Kind::kTFJob, Job("a"));
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kTFJob, "a"), {}).ok());
  MustCreate(Kind::kTFJob, Job("a"));
  Json status = Job("a");
  status["metadata"]["uid"] = MetadataOf(old).uid;
  status["metadata"]["resourceVersion"] = MetadataOf(old).resource_version;
  status["status"]["attempt"] = 1;
  EXPECT_EQ(client().UpdateStatus(Kind::kTFJob, status).status().code(), StatusCode::kAborted);
}

TEST_P(ContractTest, StatusAndSpecAreWrittenSeparately) {
  Json job = Job("a");
  job["status"]["attempt"] = 7;
  const Object created = MustCreate(Kind::kTFJob, job);
  EXPECT_FALSE(MustGetJson(Kind::kTFJob, "a").contains("status"));
  const int64_t generation = MetadataOf(created).generation;

  Json both = MustGetJson(Kind::kTFJob, "a");
  both["status"]["attempt"] = 1;
  both["spec"]["runPolicy"]["suspend"] = true;
  auto written = client().UpdateStatus(Kind::kTFJob, both);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(MetadataOf(*written).generation, generation);
  EXPECT_EQ(MustGetJson(Kind::kTFJob, "a")["status"]["attempt"], 1);
  EXPECT_FALSE(MustGetJson(Kind::kTFJob, "a")["spec"].contains("runPolicy"));

  both["metadata"].erase("resourceVersion");
  both["metadata"]["resourceVersion"] = MetadataOf(*written).resource_version;
  both["status"]["attempt"] = 2;
  written = client().Update(Kind::kTFJob, both);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(MetadataOf(*written).generation, generation + 1);
  EXPECT_EQ(MustGetJson(Kind::kTFJob, "a")["status"]["attempt"], 1);
  EXPECT_EQ(MustGetJson(Kind::kTFJob, "a")["spec"]["runPolicy"]["suspend"], true);
}

TEST_P(ContractTest, AWriteThatChangesNothingKeepsTheVersion) {
  MustCreate(Kind::kTFJob, Job("a"));
  Json job = MustGetJson(Kind::kTFJob, "a");
  job["status"]["attempt"] = 1;
  ASSERT_TRUE(client().UpdateStatus(Kind::kTFJob, job).ok());
  const Json stored = MustGetJson(Kind::kTFJob, "a");
  ASSERT_TRUE(client().UpdateStatus(Kind::kTFJob, stored).ok());
  ASSERT_TRUE(client().Update(Kind::kTFJob, stored).ok());
  EXPECT_EQ(MustGetJson(Kind::kTFJob, "a")["metadata"]["resourceVersion"],
            stored["metadata"]["resourceVersion"]);
}

TEST_P(ContractTest, APatchMergesAndRemoves) {
  MustCreate(Kind::kPod, Pod("a", "x"));
  const Json patch = {{"metadata",
                       {{"labels", {{"app", nullptr}, {"new", "v"}}},
                        {"annotations", {{"n", "1"}, {"tfjob.dev/key-id", "2.0b"}}}}}};
  auto patched = client().Patch(KeyOf(Kind::kPod, "a"), patch);
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(MetadataOf(*patched).labels, (std::map<std::string, std::string>{{"new", "v"}}));
  EXPECT_EQ(std::get<std::shared_ptr<const objects::Pod>>(*patched)->key_id, "2.0b");
  const Json whole = MustGetJson(Kind::kPod, "a");
  EXPECT_EQ(whole["metadata"]["annotations"]["note"], "kept");
  EXPECT_EQ(whole["metadata"]["annotations"]["n"], "1");
  EXPECT_EQ(client().Patch(KeyOf(Kind::kPod, "b"), patch).status().code(), StatusCode::kNotFound);
}

TEST_P(ContractTest, ADeletionNamesItsVictimByUid) {
  const Object pod = MustCreate(Kind::kPod, Pod("a", "x"));
  DeleteOptions other;
  other.uid = "11111111-0000-4000-8000-000000000000";
  EXPECT_EQ(client().Delete(KeyOf(Kind::kPod, "a"), other).code(), StatusCode::kAborted);
  EXPECT_TRUE(client().Get(KeyOf(Kind::kPod, "a")).ok());
  DeleteOptions own;
  own.uid = MetadataOf(pod).uid;
  EXPECT_TRUE(client().Delete(KeyOf(Kind::kPod, "a"), own).ok());
  EXPECT_EQ(client().Delete(KeyOf(Kind::kPod, "a"), own).code(), StatusCode::kNotFound);
}

TEST_P(ContractTest, APodOfANodeTerminatesUntilItsKubeletDeletesIt) {
  MustCreate(Kind::kPod, Pod("a", "x", "node-1"));
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kPod, "a"), {}).ok());
  auto pod = client().Get(KeyOf(Kind::kPod, "a"));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_TRUE(MetadataOf(*pod).terminating());
  EXPECT_EQ(MetadataOf(*pod).deletion_grace_period_seconds, 30);
  EXPECT_EQ(client().Create(Kind::kPod, Pod("a", "x")).status().code(), StatusCode::kAlreadyExists);

  DeleteOptions now;
  now.grace_period_seconds = 0;
  now.uid = MetadataOf(*pod).uid;
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kPod, "a"), now).ok());
  EXPECT_EQ(client().Get(KeyOf(Kind::kPod, "a")).status().code(), StatusCode::kNotFound);
  MustCreate(Kind::kPod, Pod("a", "x"));
}

TEST_P(ContractTest, AFinishedOrUnboundPodGoesAtOnce) {
  MustCreate(Kind::kPod, Pod("unbound", "x"));
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kPod, "unbound"), {}).ok());
  EXPECT_EQ(client().Get(KeyOf(Kind::kPod, "unbound")).status().code(), StatusCode::kNotFound);

  MustCreate(Kind::kPod, Pod("done", "x", "node-1"));
  Json done = MustGetJson(Kind::kPod, "done");
  done["status"]["phase"] = "Succeeded";
  ASSERT_TRUE(client().UpdateStatus(Kind::kPod, done).ok());
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kPod, "done"), {}).ok());
  EXPECT_EQ(client().Get(KeyOf(Kind::kPod, "done")).status().code(), StatusCode::kNotFound);
}

TEST_P(ContractTest, NodesHaveNoNamespace) {
  const Key key{Kind::kNode, "", StrCat(world_->name_space(), "-node")};
  const Json node = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", key.name}}}};
  MustCreate(Kind::kNode, node);
  auto got = client().Get(key);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(MetadataOf(*got).name_space, "");
  Json ready = {{"type", "Ready"}, {"status", "True"}};
  Status written = Aborted("not yet");  // a cluster's own controllers may write the node first
  for (int i = 0; i < 20 && written.code() == StatusCode::kAborted; ++i) {
    Json changed = *client().GetJson(key);
    changed["status"]["conditions"] = Json::array({ready});
    written = client().UpdateStatus(Kind::kNode, changed).status();
  }
  ASSERT_TRUE(written.ok()) << written;
  auto nodes = client().List(Kind::kNode, "", {});
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  bool seen_ready = false;
  for (const Object& object : *nodes) {
    if (MetadataOf(object).name != key.name) continue;
    const Json& listed = *std::get<std::shared_ptr<const objects::CustomResource>>(object)->object;
    seen_ready = listed["status"]["conditions"][0]["status"] == "True";
  }
  EXPECT_TRUE(seen_ready);
  EXPECT_TRUE(client().Delete(key, {}).ok());
  EXPECT_EQ(client().Get(key).status().code(), StatusCode::kNotFound);
}

TEST_P(ContractTest, DependentsGoWithTheirOwner) {
  if (!world_->collects_garbage()) GTEST_SKIP() << "nobody collects garbage here";
  const Object job = MustCreate(Kind::kTFJob, Job("a"));
  MustCreate(Kind::kPod, OwnedBy(Pod("owned", "x"), job));
  MustCreate(Kind::kPod, OwnedBy(Pod("bound", "x", "node-1"), job));
  MustCreate(Kind::kService, OwnedBy(Service("owned"), job));
  MustCreate(Kind::kPod, Pod("free", "x"));
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kTFJob, "a"), {}).ok());
  const auto gone = [this](Kind kind, const std::string& name) {
    return client().Get(KeyOf(kind, name)).status().code() == StatusCode::kNotFound;
  };
  Eventually([&] { return gone(Kind::kPod, "owned") && gone(Kind::kService, "owned"); },
             "the dependents are deleted");
  EXPECT_TRUE(MetadataOf(*client().Get(KeyOf(Kind::kPod, "bound"))).terminating());
  EXPECT_FALSE(MetadataOf(*client().Get(KeyOf(Kind::kPod, "free"))).terminating());

  MustCreate(Kind::kPod, OwnedBy(Pod("late", "x"), job));
  Eventually([&] { return gone(Kind::kPod, "late"); }, "a late dependent is deleted too");
}

}  // namespace tfjob::client
