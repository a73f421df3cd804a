// Tests that protobuf and JSON are read as the same objects. The files in testdata are responses of
// an API server (Kubernetes 1.36) to the same requests, once as JSON and once as protobuf.
#include "operator/kube/client/decode_protobuf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/client/event_reader.h"
#include "operator/kube/doubles/protobuf_writer.h"
#include "operator/kube/rest/envelope.h"
#include "operator/kube/rest/transport.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "runtime/base/file.h"

namespace tfjob::kube {
namespace {

using client::Object;
using objects::Kind;
using ::testing::HasSubstr;

std::string ReadTestData(const std::string& name) {
  const auto text = ReadFile("operator/kube/client/testdata/" + name);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

const objects::Pod& PodOf(const Object& object) {
  return *std::get<std::shared_ptr<const objects::Pod>>(object);
}

TEST(DecodeProtobuf, ListsOfPodsAreThoseOfJson) {
  for (const std::string name : {"pods", "page"}) {
    const auto json = DecodePage(Kind::kPod, ReadTestData(name + ".json"), "v1");
    const auto protobuf = DecodePage(Kind::kPod, ReadTestData(name + ".pb"), "v1");
    ASSERT_TRUE(json.ok()) << json.status();
    ASSERT_TRUE(protobuf.ok()) << protobuf.status();
    EXPECT_EQ(protobuf->resource_version, json->resource_version);
    EXPECT_EQ(protobuf->continue_token, json->continue_token);
    EXPECT_EQ(protobuf->continue_token.empty(), name == "pods");
    EXPECT_TRUE(protobuf->skipped.empty());
    ASSERT_EQ(protobuf->objects.size(), name == "pods" ? 3u : 1u);
    for (size_t i = 0; i < protobuf->objects.size(); ++i) {
      EXPECT_EQ(PodOf(protobuf->objects[i]), PodOf(json->objects[i])) << i;
    }
  }
}

TEST(DecodeProtobuf, ReadsWhatAnEvictedPodHas) {
  const auto page = DecodePage(Kind::kPod, ReadTestData("pods.pb"), "v1");
  ASSERT_TRUE(page.ok()) << page.status();
  const objects::Pod& pod = PodOf(page->objects.front());
  EXPECT_EQ(pod.metadata.name, "evicted");
  EXPECT_TRUE(pod.metadata.terminating());
  EXPECT_EQ(pod.key_id, "k-1");
  EXPECT_EQ(pod.phase, objects::PodPhase::kFailed);
  EXPECT_EQ(pod.reason, "Evicted");
  ASSERT_NE(pod.condition("DisruptionTarget"), nullptr);
  ASSERT_EQ(pod.containers.size(), 3u);
  EXPECT_TRUE(pod.containers[0].init);
  EXPECT_EQ(pod.container("tensorflow")->exit_code, 137);
  EXPECT_EQ(pod.container("tensorflow")->last_exit_code, 2);
  EXPECT_EQ(pod.container("side")->reason, "ImagePullBackOff");
}

TEST(DecodeProtobuf, ListsOfServicesAreThoseOfJson) {
  const auto json = DecodePage(Kind::kService, ReadTestData("services.json"), "v1");
  const auto protobuf = DecodePage(Kind::kService, ReadTestData("services.pb"), "v1");
  ASSERT_TRUE(json.ok()) << json.status();
  ASSERT_TRUE(protobuf.ok()) << protobuf.status();
  ASSERT_EQ(protobuf->objects.size(), 1u);
  EXPECT_EQ(*std::get<std::shared_ptr<const objects::Service>>(protobuf->objects[0]),
            *std::get<std::shared_ptr<const objects::Service>>(json->objects[0]));
}

std::vector<WatchEvent> ReadWatch(const std::string& name, const std::string& content_type) {
  std::vector<WatchEvent> events;
  const auto reader = MakeEventReader(Kind::kPod, "v1", content_type, 1 << 20);
  std::string bytes = ReadTestData(name);
  bytes.reserve(bytes.size() + kReadPadding);
  const Status read = reader->Add(bytes, [&](WatchEvent event) {
    events.push_back(std::move(event));
    return OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_FALSE(reader->within_event());
  return events;
}

TEST(DecodeProtobuf, WatchesAreThoseOfJson) {
  const auto json = ReadWatch("watch.json", "application/json");
  const auto protobuf = ReadWatch("watch.pb", "application/vnd.kubernetes.protobuf;stream=watch");
  ASSERT_EQ(protobuf.size(), 4u);
  ASSERT_EQ(json.size(), protobuf.size());
  for (size_t i = 0; i < protobuf.size(); ++i) {
    EXPECT_EQ(protobuf[i].type, json[i].type);
    EXPECT_EQ(protobuf[i].resource_version, json[i].resource_version);
    EXPECT_EQ(protobuf[i].initial_end, json[i].initial_end);
    EXPECT_EQ(protobuf[i].initial_end, i == 3);
    if (i < 3) {
      ASSERT_TRUE(protobuf[i].object.ok()) << protobuf[i].object.status();
      EXPECT_EQ(PodOf(*protobuf[i].object), PodOf(*json[i].object));
    }
  }
}

TEST(DecodeProtobuf, ErrorsAreThoseOfJson) {
  HttpResponse json;
  HttpResponse protobuf;
  json.code = protobuf.code = 404;
  json.body = ReadTestData("missing.json");
  protobuf.body = ReadTestData("missing.pb");
  const ApiError error = ParseApiError(protobuf);
  EXPECT_TRUE(error.is_status);
  EXPECT_EQ(error.name, "absent");
  EXPECT_EQ(error.reason, "NotFound");
  EXPECT_EQ(error.message, "pods \"absent\" not found");
  EXPECT_EQ(ToStatus(error), ToStatus(ParseApiError(json)));
}

TEST(DecodeProtobuf, ReadsTheErrorOfAWatch) {
  const Json status = {{"message", "too old"},
                       {"reason", "Expired"},
                       {"code", 410},
                       {"details",
                        {{"retryAfterSeconds", 3},
                         {"causes", Json::array({{{"reason", "A"}}, {{"reason", "B"}}})}}}};
  const std::string frame = WriteEventFrame("ERROR", WriteStatusEnvelope(status));
  const auto event = DecodeProtobufEvent(Kind::kPod, frame.substr(4));
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->type, EventType::kError);
  EXPECT_TRUE(event->error.expired());
  EXPECT_TRUE(event->error.HasCause("B"));
  EXPECT_EQ(event->error.retry_after, Duration(3s));
}

Json PodWith(const Json& status) {
  return {{"metadata", {{"name", "a"}, {"namespace", "ns"}, {"resourceVersion", "7"}}},
          {"status", status}};
}

// Covers container states that do not occur in the responses of the real server.
TEST(DecodeProtobuf, ReadsWhatTheJsonReaderReads) {
  const char* const time = "2026-11-21T09:30:00Z";
  const Json both = {{"running", {{"startedAt", time}}}, {"terminated", {{"exitCode", 3}}}};
  const Json cases[] = {
      {{"phase", "Nonsense"}},
      {{"phase", "Running"}, {"startTime", "1969-12-31T23:59:59Z"}},
      {{"startTime", "9999-12-31T23:59:59Z"}},
      {{"conditions", Json::array({{{"type", "Ready"}, {"lastTransitionTime", time}}})}},
      {{"containerStatuses", Json::array({{{"name", "c"}, {"state", both}}})}},
      {{"containerStatuses", Json::array({{{"name", "c"}, {"lastState", both}}})}},
      {{"containerStatuses",
        Json::array({{{"state", {{"terminated", {{"exitCode", -1}, {"signal", 2147483647}}}}}}})}},
      {{"initContainerStatuses", Json::array({{{"name", "i"}}, {{"name", "j"}}})},
       {"containerStatuses", Json::array({{{"name", "c"}, {"state", Json::object()}}})}},
  };
  for (const Json& status : cases) {
    const Json pod = PodWith(status);
    const auto json = DecodeObject(Kind::kPod, PrintJson(pod), "v1");
    const auto protobuf = DecodeObject(Kind::kPod, WriteEnvelope(Kind::kPod, pod), "v1");
    ASSERT_TRUE(json.ok()) << json.status();
    ASSERT_TRUE(protobuf.ok()) << protobuf.status();
    EXPECT_EQ(PodOf(*protobuf), PodOf(*json)) << PrintJson(status);
  }
}

// Returns a page with three pods; the pod in the middle has this status.
StatusOr<ListPage> PageAround(std::string_view status) {
  const std::string odd =
      WriteField(1, WriteField(1, "odd") + WriteField(3, "ns")) + WriteField(3, status);
  const std::string good = WriteProtobuf(Kind::kPod, PodWith({{"phase", "Running"}}));
  const std::string list = WriteField(1, WriteField(2, "9")) + WriteField(2, good) +
                           WriteField(2, odd) + WriteField(2, good);
  return DecodePage(Kind::kPod, WriteEnvelope("PodList", list), "v1");
}

TEST(DecodeProtobuf, AnOddObjectIsNamedAndDoesNotEndItsList) {
  const struct {
    std::string status;
    std::string error;
  } cases[] = {
      {WriteField(1, int64_t{7}), "Pod ns/odd: protobuf: field 1 is not a string or a message"},
      {WriteField(7, WriteField(1, int64_t{253402300800})), "after the year 9999"},
      {WriteField(8, WriteField(5, int64_t{1} << 40)), "not an integer of 32 bits"},
      {WriteField(8, WriteField(2, WriteField(3, "\xff"))), "a number does not end"},
      {WriteField(2, WriteField(1, "x") + "\x12\x7f"), "but only 0 follow"},
      {"\x0b", "unknown type 3"},
  };
  for (const auto& c : cases) {
    const auto page = PageAround(c.status);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->objects.size(), 2u);
    ASSERT_EQ(page->skipped.size(), 1u) << c.error;
    EXPECT_THAT(std::string(page->skipped[0].message()), HasSubstr(c.error));
    EXPECT_THAT(std::string(page->skipped[0].message()), HasSubstr("Pod ns/odd: "));
  }
}

TEST(DecodeProtobuf, AnOddObjectDoesNotEndItsWatch) {
  const std::string pod = WriteField(1, WriteField(1, "odd") + WriteField(6, "8")) +
                          WriteField(3, WriteField(1, int64_t{7}));
  const std::string frame = WriteEventFrame("MODIFIED", WriteEnvelope("Pod", pod));
  const auto event = DecodeProtobufEvent(Kind::kPod, frame.substr(4));
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->resource_version, "8");
  EXPECT_FALSE(event->object.ok());
}

// A container may write arbitrary bytes as its termination message. Go's JSON encoder also replaces
// bytes that are not UTF-8.
TEST(DecodeProtobuf, TextsThatAreNotUtf8AreReadWithReplacements) {
  const auto page = PageAround(WriteField(3,
                                          "a\xff"
                                          "b"));
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->objects.size(), 3u);
  EXPECT_EQ(PodOf(page->objects[1]).message,
            "a\xEF\xBF\xBD"
            "b");
}

TEST(DecodeProtobuf, RefusesWhatIsNotAskedFor) {
  const std::string pod = WriteEnvelope(Kind::kPod, PodWith({}));
  EXPECT_FALSE(DecodeObject(Kind::kService, pod, "v1").ok());
  EXPECT_FALSE(DecodeObject(Kind::kTFJob, pod, "v1").ok());
  EXPECT_FALSE(DecodePage(Kind::kPod, pod, "v1").ok());
  EXPECT_FALSE(DecodePage(Kind::kPod, WriteEnvelope("PodList", ""), "v1").ok());
  EXPECT_FALSE(DecodeObject(Kind::kPod, std::string("k8s\0", 4), "v1").ok());
  const std::string compressed =
      std::string("k8s\0", 4) + WriteField(1, WriteField(2, "Pod")) + WriteField(3, "gzip");
  EXPECT_THAT(std::string(DecodeObject(Kind::kPod, compressed, "v1").status().message()),
              HasSubstr("encoded in another way"));
  // Events without a version, of an unknown type, or without an object are rejected.
  const auto decode = [](std::string_view type, const std::string& envelope) {
    return DecodeProtobufEvent(Kind::kPod, WriteEventFrame(type, envelope).substr(4)).status();
  };
  EXPECT_TRUE(decode("ADDED", pod).ok());
  EXPECT_FALSE(decode("CHANGED", pod).ok());
  EXPECT_FALSE(decode("ADDED", WriteEnvelope("Pod", "")).ok());
  EXPECT_FALSE(decode("ADDED", "").ok());
  EXPECT_FALSE(decode("ERROR", pod).ok());
  EXPECT_FALSE(DecodeProtobufEvent(Kind::kPod, "").ok());
}

}  // namespace
}  // namespace tfjob::kube
