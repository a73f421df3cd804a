#include "operator/kube/client/decode.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/kube/client/list_collector.h"

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
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\",\"name\":\"\xc3\"}"
        "}}"}) {
    EXPECT_FALSE(Event(Kind::kPod, line).ok()) << line;
  }
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
