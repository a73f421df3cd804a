#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/objects/custom_resource.h"
#include "operator/objects/event.h"
#include "operator/objects/kind.h"
#include "operator/objects/last_line.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"

namespace tfjob::objects {
namespace {

Json Parse(std::string_view text) {
  return *ParseJson(text, "test");
}

constexpr char kMetadata[] = R"({
  "name":"mnist-worker-0","namespace":"ns","uid":"u-1","resourceVersion":"42","generation":3,
  "labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["f"],
  "ownerReferences":[
    {"apiVersion":"v1","kind":"Node","name":"n","uid":"u-3"},
    {"apiVersion":"kubeflow.org/v1","kind":"TFJob","name":"mnist","uid":"u-2","controller":true,
     "blockOwnerDeletion":true}],
  "creationTimestamp":"2026-11-21T09:30:00Z","deletionTimestamp":"2026-11-21T09:31:00Z",
  "deletionGracePeriodSeconds":30})";

TEST(ObjectMeta, ReadsEveryMember) {
  const Json json = Parse(kMetadata);
  const StatusOr<ObjectMeta> meta = ParseObjectMeta(JsonField(json, "metadata"));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->name, "mnist-worker-0");
  EXPECT_EQ(meta->name_space, "ns");
  EXPECT_EQ(meta->resource_version, "42");
  EXPECT_EQ(meta->generation, 3);
  EXPECT_EQ(meta->label("a"), "b");
  EXPECT_EQ(meta->label("x"), "");
  ASSERT_NE(meta->controller(), nullptr);
  EXPECT_EQ(meta->controller()->uid, "u-2");
  EXPECT_TRUE(meta->terminating());
  EXPECT_EQ(FormatTime(*meta->deletion_timestamp), "2026-11-21T09:31:00Z");
}

TEST(ObjectMeta, PrintsWhatItRead) {
  const Json json = Parse(kMetadata);
  EXPECT_EQ(ToJson(*ParseObjectMeta(JsonField(json))), json);
  EXPECT_EQ(ToJson(ObjectMeta()), Json::object());
}

struct BadMetadata {
  const char* json;
  const char* message;
};

TEST(ObjectMeta, WrongTypesNameTheirPath) {
  const BadMetadata cases[] = {
      {R"([])", "metadata: expected an object, got a list"},
      {R"({"name":7})", "metadata.name: expected a string, got 7"},
      {R"({"labels":{"a":true}})", "metadata.labels.a: expected a string, got true"},
      {R"({"labels":[1]})", "metadata.labels: expected an object, got a list"},
      {R"({"generation":"x"})", "metadata.generation: expected an integer, got \"x\""},
      {R"({"ownerReferences":[{"uid":{}}]})",
       "metadata.ownerReferences[0].uid: expected a string, got an object"},
      {R"({"ownerReferences":["x"]})",
       "metadata.ownerReferences[0]: expected an object, got \"x\""},
      {R"({"creationTimestamp":"yesterday"})",
       "metadata.creationTimestamp: expected an RFC 3339 time such as \"2026-11-21T09:30:00Z\", "
       "got \"yesterday\""},
  };
  for (const BadMetadata& bad : cases) {
    const Json json = Parse(bad.json);
    EXPECT_EQ(Message(ParseObjectMeta(JsonField(json, "metadata")).status()), bad.message);
  }
}

TEST(ObjectMeta, TimesAreWholeSecondsOfRealYears) {
  const auto created = [](const char* text) {
    const Json json = {{"creationTimestamp", text}, {"deletionTimestamp", text}};
    return ParseObjectMeta(JsonField(json));
  };
  EXPECT_EQ(FormatTime(created("2026-11-21T10:30:00.9+01:00")->creation_timestamp),
            "2026-11-21T09:30:00Z");
  EXPECT_EQ(created("0001-01-01T00:00:00Z")->creation_timestamp, Time());
  EXPECT_FALSE(created("1970-01-01T00:00:00Z")->terminating());
  for (const char* text : {"infinite-future", "", "10000-01-01T00:00:00Z", "2026-11-21"}) {
    EXPECT_FALSE(created(text).ok()) << text;
  }
}

TEST(ObjectMeta, RefusesInvalidUtf8) {
  const Json name = {{"name", "a\xff"}};
  EXPECT_EQ(Message(ParseObjectMeta(JsonField(name, "metadata")).status()),
            "metadata.name: expected text in UTF-8, got \"a\xEF\xBF\xBD\"");
  const Json labels = {{"labels", {{"\xc3(", "v"}}}};
  EXPECT_EQ(Message(ParseObjectMeta(JsonField(labels, "metadata")).status()),
            "metadata.labels: expected keys in UTF-8, got an object");
}

constexpr char kPodStatus[] = R"({"status":{
  "phase":"Running","reason":"Evicted","message":"low memory","podIP":"10.0.0.1",
  "podIPs":[{"ip":"10.0.0.1"}],"hostIP":"192.168.0.1","startTime":"2026-11-21T09:30:00Z",
  "conditions":[{"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI",
                 "message":"bye","lastTransitionTime":"2026-11-21T09:30:05Z"}],
  "initContainerStatuses":[{"name":"fetch","ready":false,"restartCount":2,"image":"","imageID":"",
    "state":{"terminated":{"exitCode":0,"reason":"Completed","startedAt":"2026-11-21T09:30:01Z",
                           "finishedAt":"2026-11-21T09:30:02Z"}}}],
  "containerStatuses":[
    {"name":"tensorflow","ready":true,"restartCount":1,"image":"","imageID":"",
     "state":{"running":{"startedAt":"2026-11-21T09:30:03Z"}}},
    {"name":"oom","ready":false,"restartCount":0,"image":"","imageID":"",
     "state":{"terminated":{"exitCode":137,"signal":9,"reason":"OOMKilled","message":"m"}}},
    {"name":"slow","ready":false,"restartCount":0,"image":"","imageID":"",
     "state":{"waiting":{"reason":"ImagePullBackOff","message":"no such image"}}}]}})";

TEST(Pod, StatusReadsAndPrintsTheSame) {
  const Json json = Parse(kPodStatus);
  const StatusOr<Pod> pod = ParsePod(json);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(StatusToJson(*pod), json);
}

TEST(Pod, ReadsTheKeyIdAndNoOtherAnnotation) {
  const std::string longest = std::string(63, 'a') + ".0123abcd";
  const std::pair<std::string, std::string> kCases[] = {{"2026-11.0123abcd", "2026-11.0123abcd"},
                                                        {longest, longest},
                                                        {"", ""},
                                                        {longest + "a", "invalid"},
                                                        {"A", "invalid"},
                                                        {"1\n2", "invalid"}};
  for (const auto& [annotation, expected] : kCases) {
    const Json json = {
        {"metadata", {{"annotations", {{"other", "x"}, {"tfjob.dev/key-id", annotation}}}}}};
    const StatusOr<Pod> pod = ParsePod(json);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->key_id, expected);
    EXPECT_TRUE(pod->metadata.annotations.empty());
  }
}

TEST(Pod, ReadsWhatDecisionsNeed) {
  Json json = Parse(kPodStatus);
  json["metadata"] = Parse(kMetadata);
  json["spec"] = {{"nodeName", "node-1"}, {"schedulerName", "unread"}, {"containers", "unread"}};
  const StatusOr<Pod> pod = ParsePod(json);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->metadata.label("a"), "b");
  EXPECT_TRUE(pod->metadata.annotations.empty());
  EXPECT_EQ(pod->key_id, "");
  EXPECT_EQ(pod->phase, PodPhase::kRunning);
  EXPECT_EQ(pod->node_name, "node-1");
  EXPECT_EQ(pod->restart_count(), 3);
  ASSERT_NE(pod->condition("DisruptionTarget"), nullptr);
  EXPECT_EQ(pod->condition("Ready"), nullptr);
  ASSERT_NE(pod->container("oom"), nullptr);
  EXPECT_EQ(pod->container("oom")->exit_code, 137);
  EXPECT_EQ(pod->container("oom")->state, ContainerStatus::State::kTerminated);
  EXPECT_TRUE(pod->container("fetch")->init);
  EXPECT_EQ(pod->container("none"), nullptr);
}

TEST(Pod, AFreshPodIsUnknownUntilAPhaseIsWritten) {
  EXPECT_EQ(ParsePod(Json::object())->phase, PodPhase::kUnknown);
  EXPECT_EQ(ParsePod(Parse(R"({"status":{"phase":"Hibernating"}})"))->phase, PodPhase::kUnknown);
  EXPECT_EQ(ParsePod(Parse(R"({"status":{"phase":"Pending"}})"))->phase, PodPhase::kPending);
}

TEST(Pod, WrongTypesNameTheirPath) {
  EXPECT_EQ(Message(ParsePod(Json::array()).status()),
            "the document: expected a Pod object, got a list");
  const Json code =
      Parse(R"({"status":{"containerStatuses":[{"state":{"terminated":{"exitCode":"1"}}}]}})");
  EXPECT_EQ(
      Message(ParsePod(code).status()),
      "status.containerStatuses[0].state.terminated.exitCode: expected an integer, got \"1\"");
}

TEST(Pod, ConditionsThatSayNothingAreDropped) {
  Pod pod;
  pod.conditions = {{"PodScheduled", "True", "", "", Time()},
                    {"Ready", "False", "ContainersNotReady", "", Time()},
                    {"DisruptionTarget", "True", "EvictionByEvictionAPI", "", Time()}};
  DropSettledConditions(pod);
  EXPECT_EQ(pod.conditions.size(), 3u)
      << "its conditions are all that a pod without containers has";
  pod.containers.resize(1);
  DropSettledConditions(pod);
  EXPECT_EQ(pod.condition("PodScheduled"), nullptr);
  EXPECT_NE(pod.condition("Ready"), nullptr);
  EXPECT_NE(pod.condition("DisruptionTarget"), nullptr);
}

TEST(Labels, AreFoundInOrderAndChanged) {
  LabelMap labels = {{"b", ""}, {"a", "x"}};
  EXPECT_EQ(labels.Find("a"), "x");
  EXPECT_TRUE(labels.contains("b"));
  EXPECT_EQ(labels.Find("b"), "");
  EXPECT_FALSE(labels.contains("c"));
  labels.Set("a", std::string(300, 'y'));
  labels.Set("aa", "z");
  const std::map<std::string, std::string> changed = labels;
  EXPECT_EQ(changed, (std::map<std::string, std::string>{
                         {"a", std::string(300, 'y')}, {"aa", "z"}, {"b", ""}}));
  EXPECT_EQ(LabelMap(changed), labels);
  EXPECT_TRUE(LabelMap(std::map<std::string, std::string>()).empty());
}

TEST(Service, WrongTypesNameTheirPath) {
  EXPECT_EQ(Message(ParseService(Parse(R"({"metadata":{"name":7}})")).status()),
            "metadata.name: expected a string, got 7");
}

Event MakeEvent() {
  Event event;
  event.involved = {"kubeflow.org/v1", "TFJob", "ns", "mnist", "u-2", "42"};
  event.type = EventType::kWarning;
  event.reason = "TFJobRestarting";
  event.message = "why";
  return event;
}

TEST(Event, PrintsACoreEvent) {
  const Time now = *ParseTime("2026-11-21T09:30:00Z");
  const Json json = ToJson(MakeEvent(), now);
  EXPECT_EQ(json["type"], "Warning");
  EXPECT_EQ(json["metadata"]["namespace"], "ns");
  EXPECT_EQ(json["source"]["component"], "tfjob-controller");
  EXPECT_EQ(json["count"], 1);
  EXPECT_EQ(json["firstTimestamp"], "2026-11-21T09:30:00Z");
  EXPECT_EQ(json["involvedObject"], (Json{{"apiVersion", "kubeflow.org/v1"},
                                          {"kind", "TFJob"},
                                          {"namespace", "ns"},
                                          {"name", "mnist"},
                                          {"uid", "u-2"},
                                          {"resourceVersion", "42"}}));
  EXPECT_EQ(json["reason"], "TFJobRestarting");
  EXPECT_EQ(json["message"], "why");
}

TEST(Event, NamesDifferByTimeAndContentAndAreOtherwiseStable) {
  const Time now = *ParseTime("2026-11-21T09:30:00Z");
  Event other = MakeEvent();
  other.message = "something else";
  const auto name = [](const Event& event, Time time) {
    return ToJson(event, time)["metadata"]["name"].get<std::string>();
  };
  EXPECT_EQ(name(MakeEvent(), now), name(MakeEvent(), now));
  EXPECT_NE(name(MakeEvent(), now), name(other, now));
  EXPECT_NE(name(MakeEvent(), now), name(MakeEvent(), now + 1us));
  EXPECT_EQ(name(MakeEvent(), now).substr(0, 6), "mnist.");
}

TEST(Event, CutsALongMessageBetweenCharacters) {
  Event event = MakeEvent();
  event.message.clear();
  while (event.message.size() < 2000) event.message += "é";
  const std::string message = ToJson(event, Time())["message"];
  EXPECT_LE(message.size(), 1024u);
  EXPECT_EQ(message.substr(message.size() - 5), "é...");
}

TEST(CustomResource, KeepsTheWholeObject) {
  const Json json =
      Parse(R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"j"},"spec":7})");
  const StatusOr<CustomResource> resource = ParseCustomResource(json);
  ASSERT_TRUE(resource.ok()) << resource.status();
  EXPECT_EQ(resource->kind, "TFJob");
  EXPECT_EQ(resource->metadata.name, "j");
  EXPECT_EQ(*resource->object, json);
  EXPECT_EQ(Message(ParseCustomResource(Json(7)).status()),
            "the document: expected an object, got 7");
}

TEST(Kind, HasANameAVersionAndAScope) {
  constexpr struct {
    Kind kind;
    std::string_view name;
    std::string_view api_version;
    bool is_pod_group = false;
    bool is_gang_kind = false;
    bool is_cluster_scoped = false;
  } kCases[] = {
      {Kind::kTFJob, "TFJob", "kubeflow.org/v1"},
      {Kind::kPod, "Pod", "v1"},
      {Kind::kService, "Service", "v1"},
      {Kind::kConfigMap, "ConfigMap", "v1"},
      {Kind::kEvent, "Event", "v1"},
      {Kind::kPodGroup, "PodGroup", "scheduling.volcano.sh/v1beta1", true, true},
      {Kind::kCoschedulingPodGroup, "PodGroup", "scheduling.x-k8s.io/v1alpha1", true, true},
      {Kind::kWorkload, "Workload", "scheduling.k8s.io/v1beta1", false, true},
      {Kind::kNativePodGroup, "PodGroup", "scheduling.k8s.io/v1beta1", true, true},
      {Kind::kNetworkPolicy, "NetworkPolicy", "networking.k8s.io/v1"},
      {Kind::kLease, "Lease", "coordination.k8s.io/v1"},
      {Kind::kNode, "Node", "v1", false, false, true},
  };
  for (const auto& expected : kCases) {
    EXPECT_EQ(Name(expected.kind), expected.name);
    EXPECT_EQ(NewestApiVersion(expected.kind), expected.api_version) << expected.name;
    EXPECT_EQ(IsPodGroup(expected.kind), expected.is_pod_group) << expected.api_version;
    EXPECT_EQ(IsGangKind(expected.kind), expected.is_gang_kind) << expected.api_version;
    EXPECT_EQ(IsOnePerJob(expected.kind),
              expected.is_gang_kind || expected.kind == Kind::kNetworkPolicy)
        << expected.name;
    EXPECT_EQ(IsClusterScoped(expected.kind), expected.is_cluster_scoped) << expected.name;
  }
}

TEST(LastLine, IsTheLastOneThatIsNotBlankAndFitForATerminal) {
  const struct {
    const char* text;
    const char* line;
  } cases[] = {
      {"", ""},
      {"\n \t\r\n", ""},
      {"one", "one"},
      {"Traceback:\n  File \"x\"\nValueError: no\n\n", "ValueError: no"},
      {"a\tb  c\x01"
       "d",
       "a b c d"},
      {"\x1b]0;title\x07red\x1b[31m", "]0;title red [31m"},
      {"c1 \xc2\x9b"
       "31m",
       "c1 31m"},
      {"\xe2\x80\xae"
       "evil \xe2\x80\xa8line",
       "evil line"},
      {"caf\xc3\xa9 \xff\xfe", "caf\xc3\xa9 ??"},
      {"cut \xe2\x82", "cut ??"},
  };
  for (const auto& each : cases) EXPECT_EQ(LastLine(each.text), each.line) << each.text;
}

TEST(LastLine, IsCutBetweenCharacters) {
  EXPECT_EQ(LastLine("123456789", 9), "123456789");
  EXPECT_EQ(LastLine("1234567890", 9), "123456…");
  EXPECT_EQ(LastLine("12345\xc3\xa9\xc3\xa9\xc3\xa9", 9), "12345…");
  EXPECT_LE(LastLine(std::string(1 << 20, 'x')).size(), 512u);
}

TEST(Pod, KeepsHowTheLastRunEnded) {
  const Json json = ParseJson(R"({"status": {"phase": "Running", "containerStatuses": [
      {"name": "tensorflow", "ready": false, "restartCount": 3, "image": "", "imageID": "",
       "state": {"waiting": {"reason": "CrashLoopBackOff"}},
       "lastState": {"terminated": {"exitCode": 2, "message": "no such file"}}}]}})",
                              "test")
                        .value();
  const StatusOr<Pod> pod = ParsePod(json);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->containers[0].last_exit_code, 2);
  EXPECT_EQ(pod->containers[0].last_message, "no such file");
  EXPECT_EQ(StatusToJson(*pod), json);
}

}  // namespace
}  // namespace tfjob::objects
