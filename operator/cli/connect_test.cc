#include "operator/cli/connect.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "operator/cli/kube_logs.h"
#include "operator/kube/doubles/fake_transport.h"
#include "runtime/base/file.h"

namespace tfjob::cli {
namespace {

using kube::FakeAnswer;
using kube::HttpRequest;

TEST(LogTargetTest, SaysWhatIsAskedFor) {
  LogRequest request{"ns", "mnist-worker-0", "tensorflow"};
  EXPECT_EQ(LogTarget(request),
            "/api/v1/namespaces/ns/pods/mnist-worker-0/log?container=tensorflow");
  request.follow = request.previous = request.timestamps = true;
  request.tail_lines = 0;
  request.since = 1500ms;
  EXPECT_EQ(
      LogTarget(request),
      "/api/v1/namespaces/ns/pods/mnist-worker-0/log?container=tensorflow&follow=true&previous="
      "true&timestamps=true&tailLines=0&sinceSeconds=2");
  request = {"ns", "p", "c"};
  request.since = 1h;
  request.since_time = *ParseTime("2026-11-21T09:00:00Z");
  EXPECT_EQ(LogTarget(request),
            "/api/v1/namespaces/ns/pods/p/log?container=c&sinceTime=2026-11-21T09%3A00%3A00Z");
}

class KubeLogsTest : public ::testing::Test {
 protected:
  // Reads a log from a server that responds with `answer`. Appends what it reads to text_.
  Status Read(FakeAnswer answer, bool follow = false, size_t enough = std::string::npos) {
    kube::RestClient rest(
        std::make_unique<kube::FakeTransport>([&](const HttpRequest&) { return answer; }),
        kube::NoCredentials(), {});
    LogRequest request{"ns", "p", "c"};
    request.follow = follow;
    return KubeLogs(rest).Read(request, stop_, [&](std::string_view bytes) {
      text_ += bytes;
      return text_.size() < enough;
    });
  }

  StopSource stop_;
  std::string text_;
};

TEST_F(KubeLogsTest, GivesAllPieces) {
  EXPECT_TRUE(Read(kube::StreamOf({"one\nt", "wo\n"}, FakeAnswer::End::kClean)).ok());
  EXPECT_EQ(text_, "one\ntwo\n");
}

TEST_F(KubeLogsTest, EndsWhenNobodyWantsMore) {
  EXPECT_TRUE(Read(kube::StreamOf({"one\n", "two\n"}), true, 4).ok());
  EXPECT_EQ(text_, "one\n");
}

TEST_F(KubeLogsTest, ASilentLogIsFollowedUntilTheStop) {
  std::thread stopper([this] { stop_.Request(2); });
  EXPECT_TRUE(Read(kube::StreamOf({}), true).ok());
  stopper.join();
}

TEST_F(KubeLogsTest, ErrorsAreTheServersWords) {
  const Status waiting = Read(kube::Answer(
      400, R"({"kind":"Status","reason":"BadRequest","message":"container is waiting to start"})"));
  EXPECT_EQ(waiting.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(Message(waiting).find("container is waiting to start"), std::string_view::npos);
  const Status gone = Read(kube::Answer(
      404,
      R"({"kind":"Status","reason":"NotFound","details":{"name":"p"},"message":"pods \"p\" not found"})"));
  EXPECT_EQ(gone.code(), StatusCode::kNotFound);
  EXPECT_EQ(Message(Read(kube::Answer(204, ""))), "it has no node yet, so it has no log");
  EXPECT_EQ(Read(kube::StreamOf({"half"}, FakeAnswer::End::kBroken)).code(),
            StatusCode::kUnavailable);
}

class ConnectTest : public ::testing::Test {
 protected:
  ConnectTest() : kubeconfig_(StrCat(::testing::TempDir(), "kubeconfig.", getpid())) {
    const Status written =
        WriteFileAtomically(kubeconfig_,
                            "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
                            "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
                            "contexts: [{name: dev, context: {cluster: c, namespace: team}}]\n");
    EXPECT_TRUE(written.ok()) << written;
  }

  const std::string kubeconfig_;
};

TEST_F(ConnectTest, FindsServerAndNamespace) {
  const auto cluster = ConnectToCluster({.kubeconfig = kubeconfig_});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ((*cluster)->name_space(), "team");
  EXPECT_TRUE((*cluster)->server().starts_with("http://127.0.0.1:1 (context \"dev\""))
      << (*cluster)->server();
  const auto other = ConnectToCluster({.kubeconfig = kubeconfig_, .name_space = "mine"});
  EXPECT_EQ((*other)->name_space(), "mine");
}

TEST_F(ConnectTest, AServerThatIsAwayIsAnErrorOfTheCall) {
  const auto cluster = ConnectToCluster({.kubeconfig = kubeconfig_, .request_timeout = 5s});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ((*cluster)->client().List(objects::Kind::kTFJob, "team", {}).status().code(),
            StatusCode::kUnavailable);
}

TEST_F(ConnectTest, ATimeoutOf0IsNoLimit) {
  const auto cluster = ConnectToCluster({.kubeconfig = kubeconfig_, .request_timeout = 0s});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Status away = (*cluster)->client().List(objects::Kind::kTFJob, "team", {}).status();
  EXPECT_EQ(away.code(), StatusCode::kUnavailable) << away;
}

TEST_F(ConnectTest, NamesWhatIsWrong) {
  EXPECT_EQ(Message(ConnectToCluster({.kubeconfig = kubeconfig_, .as_groups = {"a"}}).status()),
            "--as-group: a group requires a user; give --as too");
  const Status context =
      ConnectToCluster({.kubeconfig = kubeconfig_, .context = "nowhere"}).status();
  EXPECT_NE(Message(context).find("nowhere"), std::string_view::npos) << context;
  const Status file = ConnectToCluster({.kubeconfig = "/nowhere"}).status();
  EXPECT_NE(Message(file).find("/nowhere"), std::string_view::npos) << file;
}

}  // namespace
}  // namespace tfjob::cli
