// Tests which calls request protobuf, and that the client reads the representation that the server
// chose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/client/kube_client.h"
#include "operator/kube/doubles/call_log.h"
#include "operator/kube/doubles/fake_transport.h"
#include "operator/kube/doubles/protobuf_writer.h"
#include "operator/kube/rest/envelope.h"
#include "operator/objects/metadata.h"

namespace tfjob::kube {
namespace {

using client::Object;
using objects::Kind;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kProtobufStream[] = "application/vnd.kubernetes.protobuf;stream=watch";

class RepresentationTest : public ::testing::Test {
 protected:
  // Creates a client for a server that sends the answers in order, and then repeats the last one.
  void Serve(std::vector<FakeAnswer> answers) {
    KubeClientOptions options;
    options.rest.qps = 0;
    {
      MutexLock lock(mutex_);
      accepts_.clear();
    }
    options.watch.policy.backoff = {1ms, 5ms, 2.0, 0.0};
    options.watch.seed = 1;
    client_ = std::make_unique<KubeClient>(
        std::make_unique<FakeTransport>(
            [this, answers = std::move(answers)](const HttpRequest& request) {
              MutexLock lock(mutex_);
              accepts_.push_back(request.accept);
              return answers[std::min(accepts_.size(), answers.size()) - 1];
            }),
        NoCredentials(), options);
  }

  // Returns the requests' Accept headers, in order.
  std::vector<std::string> accepts() {
    MutexLock lock(mutex_);
    return accepts_;
  }

  std::unique_ptr<KubeClient> client_;

 private:
  Mutex mutex_;
  std::vector<std::string> accepts_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(RepresentationTest, AsksForProtobufOnlyWhereItReadsProtobuf) {
  const Json object = {{"metadata", {{"name", "a"}, {"namespace", "ns"}}}};
  for (const Kind kind : {Kind::kPod, Kind::kService, Kind::kTFJob, Kind::kConfigMap}) {
    Serve({Answer(200, R"({"metadata":{"name":"a","resourceVersion":"1"}})")});
    const client::Key key{kind, "ns", "a"};
    EXPECT_TRUE(client_->Get(key).ok());
    EXPECT_TRUE(client_->List(kind, "ns", {}).ok());
    EXPECT_TRUE(client_->Create(kind, object).ok());
    EXPECT_TRUE(client_->Update(kind, object).ok());
    EXPECT_TRUE(client_->Patch(key, object).ok());
    const bool protobuf = kind == Kind::kPod || kind == Kind::kService;
    EXPECT_THAT(accepts(), AllOf(SizeIs(5), Each(protobuf ? kAcceptProtobuf : kAcceptJson)))
        << client::Name(kind);
  }
}

TEST_F(RepresentationTest, ReadsWholeObjectsAsJson) {
  Serve({Answer(200, R"({"metadata":{"name":"a"}})")});
  EXPECT_TRUE(client_->GetJson({Kind::kPod, "ns", "a"}).ok());
  EXPECT_THAT(accepts(), ElementsAre(kAcceptJson));
}

std::string Frame(const char* type, const char* name, const char* version) {
  return WriteEventFrame(
      type,
      WriteEnvelope(Kind::kPod, {{"metadata", {{"name", name}, {"resourceVersion", version}}}}));
}

std::string InitialEnd(const char* version) {
  const Json annotations = {{"k8s.io/initial-events-end", "true"}};
  return WriteEventFrame(
      "BOOKMARK",
      WriteEnvelope(Kind::kPod,
                    {{"metadata", {{"resourceVersion", version}, {"annotations", annotations}}}}));
}

FakeAnswer ProtobufStream(std::vector<std::string> pieces,
                          FakeAnswer::End end = FakeAnswer::End::kSilent) {
  FakeAnswer answer = StreamOf(std::move(pieces), end);
  answer.response.content_type = kProtobufStream;
  return answer;
}

TEST_F(RepresentationTest, WatchesInProtobufAndListsAgainWhenItsVersionExpires) {
  const std::string frames = Frame("ADDED", "a", "1") + InitialEnd("1") + Frame("ADDED", "b", "2") +
                             Frame("DELETED", "a", "3");
  const std::string expired =
      WriteEventFrame("ERROR", WriteStatusEnvelope({{"code", 410}, {"message", "too old"}}));
  Serve({ProtobufStream({frames.substr(0, 50), frames.substr(50), expired}),
         ProtobufStream({Frame("ADDED", "b", "2"), InitialEnd("9")})});
  CallLog log;
  const auto subscription = client_->Subscribe(Kind::kPod, "", {}, log);
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  EXPECT_THAT(log.Await(4), ElementsAre("replaced a", "upserted b", "deleted a", "replaced b"));
  EXPECT_THAT(accepts(), Each(kAcceptProtobuf));
}

// If a stream breaks off within a frame, the reader must not mistake the beginning of the next
// stream for the missing part of that frame.
TEST_F(RepresentationTest, GoesOnAfterAStreamThatBreaksWithinAFrame) {
  const std::string half = Frame("ADDED", "b", "2").substr(0, 9);
  Serve(
      {ProtobufStream({Frame("ADDED", "a", "1") + InitialEnd("1") + half}, FakeAnswer::End::kClean),
       Answer(200, R"({"metadata":{"resourceVersion":"2"},"items":[]})"),  // to the probe
       ProtobufStream({Frame("ADDED", "b", "2")})});
  CallLog log;
  const auto subscription = client_->Subscribe(Kind::kPod, "", {}, log);
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  EXPECT_THAT(log.Await(2), ElementsAre("replaced a", "upserted b"));
}

}  // namespace
}  // namespace tfjob::kube
