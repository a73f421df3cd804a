#include "operator/kube/client/decode.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/kube/client/list_collector.h"
#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"

namespace tfjob::kube {
namespace {

using client::Object;
using objects::Kind;

constexpr char kPod[] = R"({"apiVersion":"v1","kind":"Pod",
  "metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"k":"v"},
    "annotations":{"x":"y"},"managedFields":[{"manager":"m"}],
    "ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"TFJob","name":"j","uid":"o",
                        "controller":true}],
    "creationTimestamp":"2026-11-21T09:30:00Z","deletionTimestamp":null},
  "spec":{"nodeName":"n","containers":[{"name":"tensorflow"}]},
  "status":{"phase":"Running","startTime":"2026-11-21T09:30:01Z",
    "conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-11-21T09:30:02Z"}],
    "containerStatuses":[{"name":"tensorflow","restartCount":2,"ready":true,
      "state":{"running":{"startedAt":"2026-11-21T09:30:01.5Z"}}}]}})";

StatusOr<WatchEvent> Event(Kind kind, std::string line) {
  line.reserve(line.size() + JsonDocument::kPadding);
  JsonDocument document;
  return DecodeEvent(kind, document, line, "v1");
}

TEST(Decode, ReadsAPodAsTheSlowDecoderDoes) {
  const auto fast = DecodeObject(Kind::kPod, kPod, "v1");
  ASSERT_TRUE(fast.ok()) << fast.status();
  objects::Pod slow = *objects::ParsePod(*ParseJson(kPod, "pod"));
  objects::DropSettledConditions(slow);
  EXPECT_EQ(*std::get<std::shared_ptr<const objects::Pod>>(*fast), slow);
  EXPECT_EQ(std::get<std::shared_ptr<const objects::Pod>>(*fast)->restart_count(), 2);
}

TEST(Decode, KeepsACustomResourceButItsManagedFields) {
  const auto decoded = DecodeObject(
      Kind::kTFJob,
      R"({"metadata":{"name":"j","managedFields":[1],"annotations":{"managedFields":"kept"}},
          "spec":{"managedFields":"kept"}})",
      "kubeflow.org/v1");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const Json expected = {
      {"apiVersion", "kubeflow.org/v1"},
      {"kind", "TFJob"},
      {"metadata", {{"name", "j"}, {"annotations", {{"managedFields", "kept"}}}}},
      {"spec", {{"managedFields", "kept"}}}};
  EXPECT_EQ(*std::get<std::shared_ptr<const objects::CustomResource>>(*decoded)->object, expected);
}

TEST(Decode, KeepsOfANodeWhatDecisionsNeed) {
  const auto decoded = DecodeObject(
      Kind::kNode,
      R"({"metadata":{"name":"n","annotations":{"a":"b"}},"spec":{"podCIDR":"x","unschedulable":true},
          "status":{"images":[1],"conditions":[{"type":"Ready"}]}})",
      "v1");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  Json ready = {{"type", "Ready"}};
  const Json expected = {{"apiVersion", "v1"},
                         {"kind", "Node"},
                         {"metadata", {{"name", "n"}}},
                         {"spec", {{"unschedulable", true}}},
                         {"status", {{"conditions", Json::array({ready})}}}};
  EXPECT_EQ(*std::get<std::shared_ptr<const objects::CustomResource>>(*decoded)->object, expected);
}

TEST(Decode, ErrorsNameObjectAndPath) {
  EXPECT_EQ(Message(DecodeObject(Kind::kPod, R"({"metadata":{"name":"a","namespace":"ns"},
                                                 "status":{"phase":7}})",
                                 "v1")
                        .status()),
            "Pod ns/a: status.phase: expected a string, got 7");
  EXPECT_FALSE(DecodeObject(Kind::kPod, "[]", "v1").ok());
  EXPECT_FALSE(DecodeObject(Kind::kTFJob, "7", "v1").ok());
  EXPECT_FALSE(DecodeObject(Kind::kService, "{", "v1").ok());
}

TEST(Decode, ReadsPages) {
  const auto page = DecodePage(
      Kind::kConfigMap,
      R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"9","continue":"next"},"items":[
          {"metadata":{"name":"a"}},{"metadata":{"name":7}},{"metadata":{"name":"b"}}]})",
      "v1");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->continue_token, "next");
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(std::get<std::shared_ptr<const objects::CustomResource>>(page->objects[1])->kind,
            "ConfigMap");
  EXPECT_EQ(page->skipped.size(), 1u);
  // Go may write an empty list as null.
  EXPECT_TRUE(DecodePage(Kind::kPod, R"({"metadata":{"resourceVersion":"1"},"items":null})", "v1")
                  ->objects.empty());
  EXPECT_FALSE(DecodePage(Kind::kPod, R"({"kind":"Status"})", "v1").ok());
}

TEST(Decode, ReadsEvents) {
  auto event = Event(Kind::kPod, StrCat(R"({"type":"MODIFIED","object":)", kPod, "}"));
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->type, EventType::kModified);
  EXPECT_EQ(event->resource_version, "7");
  EXPECT_EQ(client::MetadataOf(*event->object).name, "a");

  event = Event(Kind::kPod, R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{
      "resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}})");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_TRUE(event->initial_end);
  EXPECT_EQ(event->resource_version, "12");

  event = Event(Kind::kPod, R"({"type":"ERROR","object":{"kind":"Status","code":410,
      "reason":"Expired","message":"too old resource version"}})");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_TRUE(event->error.expired());

  // An object that cannot be decoded must not end the stream.
  event = Event(Kind::kPod, R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1",
      "labels":7}}})");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_FALSE(event->object.ok());
}

TEST(Decode, RefusesLinesThatAreNoEvents) {
  for (const char* line :
       {"{", "7", "{}", R"({"type":"ADDED"})", R"({"type":"RENAMED","object":{}})",
        R"({"type":"ADDED","object":{}})", R"({"type":"ADDED","object":"x"})",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xc3\"}}}",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"\xc3\"}}}"}) {
    EXPECT_FALSE(Event(Kind::kPod, line).ok()) << line;
  }
}

std::string Repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string DeepJson(size_t levels) {
  return Repeated("{\"x\":", levels) + "1" + Repeated("}", levels);
}

// Returns a TFJob with the JSON value `odd` in its template.
std::string OddJob(const std::string& odd) {
  return R"({"metadata":{"name":"odd","namespace":"ns","uid":"u","resourceVersion":"7",
                         "managedFields":[)" +
         DeepJson(300) + R"(]},"spec":{"runPolicy":{"cleanPodPolicy":"All"},
      "tfReplicaSpecs":{"Worker":{"replicas":2,"template":{"odd":)" +
         odd + "}}}}}";
}

struct Odd {
  std::string json;
  std::string problem;
};
const Odd kOdd[] = {
    {DeepJson(300), ".x.x.x.x.x.x: nested deeper than 200 levels"},
    {DeepJson(9000), ".x.x.x.x.x.x: nested deeper than 200 levels"},
    {Repeated("[", 9000) + Repeated("]", 9000), "[0]: nested deeper than 200 levels"},
    {"\"\xff\xfe\"", ": not valid UTF-8"},
    {"[" + Repeated("{},", 450'000) + "{}]", "has more than 50000 JSON values"},
    {"{\"a\":1e999}", ".a: the value is not valid JSON: "},
    // A long key must be cut, but not within a character.
    {"{\"" + Repeated("a", 59) + "é\":1e999}",
     "." + Repeated("a", 59) + ": the value is not valid"},
};

const objects::CustomResource& JobIn(const StatusOr<Object>& object) {
  return *std::get<std::shared_ptr<const objects::CustomResource>>(*object);
}

void ExpectOddJob(const StatusOr<Object>& object, const Odd& odd) {
  ASSERT_TRUE(object.ok()) << object.status();
  const objects::CustomResource& job = JobIn(object);
  EXPECT_EQ(job.metadata.name, "odd");
  EXPECT_EQ(job.metadata.uid, "u");
  EXPECT_EQ(job.kind, "TFJob");
  const std::string problem(Message(job.problem));
  EXPECT_TRUE(problem.starts_with("spec.tfReplicaSpecs.Worker.template.odd")) << problem;
  EXPECT_NE(problem.find(odd.problem), std::string::npos) << problem;
  EXPECT_EQ(problem.find('\n'), std::string::npos) << problem;
  // The other fields of the spec must be kept.
  const Json& spec = (*job.object)["spec"];
  EXPECT_EQ(spec["runPolicy"]["cleanPodPolicy"], "All");
  EXPECT_EQ(spec["tfReplicaSpecs"]["Worker"]["replicas"], 2);
  EXPECT_FALSE((*job.object)["metadata"].contains("managedFields"));
}

TEST(DecodeOdd, AJobThatCannotBeReadAsAWholeIsNamedWithItsProblem) {
  for (const Odd& odd : kOdd) {
    ExpectOddJob(DecodeObject(Kind::kTFJob, OddJob(odd.json), "kubeflow.org/v1"), odd);
  }
}

TEST(DecodeOdd, TheStatusIsReadHoweverLargeTheSpecIs) {
  std::string values = "1";
  for (int i = 0; i < 9000; ++i) values += ",1";
  std::string lists;
  for (int i = 0; i < 10; ++i) lists += StrCat(i == 0 ? "\"l" : ",\"l", i, "\":[", values, "]");
  const auto object = DecodeObject(Kind::kTFJob,
                                   StrCat(R"({"metadata":{"name":"j"},"spec":{)", lists,
                                          R"(},"status":{"conditions":[)", values, "]}}"),
                                   "kubeflow.org/v1");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_TRUE(Message(JobIn(object).problem).starts_with("spec.l")) << JobIn(object).problem;
  EXPECT_EQ((*JobIn(object).object)["status"]["conditions"].size(), 9001u);
  EXPECT_GE((*JobIn(object).object)["spec"].size(), 3u);
}

// Pods are read without a tree, so they may have any number of values.
TEST(DecodeOdd, APodMayHaveAnyNumberOfValues) {
  std::string pod = kPod;
  const std::string container = R"({"name":"tensorflow"})";
  pod.replace(pod.find(container), container.size(), Repeated(container + ",", 40'000) + container);
  const auto event = Event(Kind::kPod, R"({"type":"ADDED","object":)" + pod + "}");
  ASSERT_TRUE(event.ok() && event->object.ok()) << event.status();
  EXPECT_TRUE(DecodeObject(Kind::kPod, pod, "v1").ok());
}

// API servers store numbers beyond 2^64 as floating-point numbers and print them without exponents.
TEST(DecodeOdd, NumbersOfAnySizeAreRead) {
  for (const char* number :
       {"100000000000000000000", "1e300", "18446744073709551616", "-9223372036854775809"}) {
    const auto object = DecodeObject(Kind::kTFJob, OddJob(number), "kubeflow.org/v1");
    ASSERT_TRUE(object.ok()) << object.status();
    EXPECT_TRUE(JobIn(object).problem.ok()) << JobIn(object).problem;
    const Json& worker = (*JobIn(object).object)["spec"]["tfReplicaSpecs"]["Worker"];
    EXPECT_EQ(PrintJson(worker["template"]["odd"]), PrintJson(Json(std::stod(number)))) << number;
  }
}

TEST(DecodeOdd, TheOthersOfThePageAreRead) {
  for (const Odd& odd : kOdd) {
    const auto page = DecodePage(Kind::kTFJob,
                                 R"({"items":[{"metadata":{"name":"a"}},)" + OddJob(odd.json) +
                                     R"(,{"metadata":{"name":"b"}}],"metadata":{"continue":"c",
                                          "resourceVersion":"9"}})",
                                 "kubeflow.org/v1");
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->continue_token, "c");
    ASSERT_EQ(page->objects.size(), 3u) << odd.problem;
    EXPECT_EQ(client::MetadataOf(page->objects[0]).name, "a");
    ExpectOddJob(page->objects[1], odd);
    EXPECT_EQ(client::MetadataOf(page->objects[2]).name, "b");
  }
}

TEST(DecodeOdd, TheLineOfAWatchIsAnEventOfThatJob) {
  for (const Odd& odd : kOdd) {
    const auto event =
        Event(Kind::kTFJob, R"({"type":"MODIFIED","object":)" + OddJob(odd.json) + "}");
    ASSERT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event->type, EventType::kModified);
    EXPECT_EQ(event->resource_version, "7");
    ExpectOddJob(event->object, odd);
  }
}

TEST(DecodeOdd, OtherKindsAreLeftOutByName) {
  const std::string odd = R"({"metadata":{"name":"odd","namespace":"ns","resourceVersion":"7"},
                              "spec":)" +
                          DeepJson(300) + "}";
  const auto page = DecodePage(
      Kind::kPod,
      R"({"metadata":{"resourceVersion":"9"},"items":[)" + odd + "," + std::string(kPod) + "]}",
      "v1");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->objects.size(), 1u);
  ASSERT_EQ(page->skipped.size(), 1u);
  EXPECT_TRUE(Message(page->skipped[0]).starts_with("Pod ns/odd: spec.x.x.x")) << page->skipped[0];
  const auto event = Event(Kind::kPod, R"({"type":"ADDED","object":)" + odd + "}");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->resource_version, "7");
  EXPECT_TRUE(Message(event->object.status()).starts_with("Pod ns/odd: "))
      << event->object.status();
}

// A client that may write a pod may also write its managedFields. The operator does not read them.
TEST(DecodeOdd, ManagedFieldsMayContainAnything) {
  std::string pod = kPod;
  const std::string plain = R"([{"manager":"m"}])";
  pod.replace(pod.find(plain), plain.size(), "[" + DeepJson(400) + "]");
  const auto odd = DecodeObject(Kind::kPod, pod, "v1");
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ(std::get<std::shared_ptr<const objects::Pod>>(*odd)->restart_count(), 2);
}

TEST(DecodeOdd, AJobWithoutAReadableNameIsLeftOut) {
  const auto event = Event(Kind::kTFJob,
                           "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":"
                           "\"1\",\"name\":\"\xc3\"}}}");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->resource_version, "1");
  EXPECT_FALSE(event->object.ok());
}

Object Named(const char* name, const char* version) {
  objects::Service service;
  service.metadata.name = name;
  service.metadata.resource_version = version;
  return Object(std::make_shared<const objects::Service>(service));
}

TEST(ListCollector, TakesChangesOfTheMeantimeIntoAccount) {
  ListCollector collector;
  collector.Add(EventType::kAdded, Named("a", "1"));
  collector.Add(EventType::kAdded, Named("b", "2"));
  collector.Add(EventType::kAdded, Named("c", "3"));
  collector.Add(EventType::kModified, Named("a", "4"));
  collector.Add(EventType::kDeleted, Named("b", "5"));
  std::map<std::string, std::string> versions;
  for (const Object& object : collector.Take()) {
    versions[client::MetadataOf(object).name] = client::MetadataOf(object).resource_version;
  }
  EXPECT_EQ(versions, (std::map<std::string, std::string>{{"a", "4"}, {"c", "3"}}));
  EXPECT_TRUE(collector.Take().empty());
}

}  // namespace
}  // namespace tfjob::kube
