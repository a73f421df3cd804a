#include "operator/cli/verbs/logs.h"

#include <gtest/gtest.h>

#include <thread>

#include "operator/cli/verbs/log_printer.h"
#include "operator/cli/verbs/testing.h"
#include "operator/client/forwarding_client.h"
#include "operator/objects/pod.h"

namespace tfjob::cli {
namespace {

using objects::Kind;
using testing::Conditions;

constexpr char kRunning[] =
    "{phase: Running, containerStatuses: [{name: tensorflow, restartCount: 0, state: {running: "
    "{}}}]}";
constexpr char kEnded[] =
    "{phase: Succeeded, containerStatuses: [{name: tensorflow, restartCount: 0, state: "
    "{terminated: {exitCode: 0}}}]}";

class LogsTest : public ::testing::Test {
 protected:
  LogsTest() {
    cluster().CreateJob("mnist", "{Chief: {}, Worker: {replicas: 2}}",
                        "{" + Conditions({{"Running", "True"}}) + "}");
  }
  testing::FakeCluster& cluster() { return world_.cluster; }
  void CreatePods() {
    cluster().CreatePod("mnist", "chief", 0, kRunning, "node");
    cluster().CreatePod("mnist", "worker", 0, kRunning, "node");
    cluster().logs().Set(
        "mnist-chief-0/tensorflow",
        "2026-11-21T09:00:01.000000000Z one\n2026-11-21T09:00:02.000000000Z two\n");
    cluster().logs().Set("mnist-worker-0/tensorflow", "2026-11-21T09:00:01.500000000Z hello\n");
  }
  LogsOptions Options(const std::vector<std::string>& replicas = {}) {
    LogsOptions options;
    options.name = "mnist";
    options.replicas = *ReplicaChoice::Parse(replicas);
    return options;
  }

  testing::World world_;
};

TEST_F(LogsTest, PrintsLogsOneAfterTheOther) {
  CreatePods();
  EXPECT_EQ(Logs(Options(), world_.context), view::kSucceeded) << world_.Err();
  EXPECT_EQ(world_.Out(), "mnist-chief-0 | one\nmnist-chief-0 | two\nmnist-worker-0 | hello\n");
}

TEST_F(LogsTest, OneReplicaNeedsNoName) {
  CreatePods();
  LogsOptions options = Options({"chief"});
  options.tail_lines = 1;
  EXPECT_EQ(Logs(options, world_.context), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "two\n");
  options.timestamps = true;
  EXPECT_EQ(Logs(options, world_.context), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "2026-11-21T09:00:02.000000000Z two\n");
}

TEST_F(LogsTest, PassesOnWhatIsAskedFor) {
  CreatePods();
  cluster().logs().Set("mnist-chief-0/sidecar/previous", "old\n");
  LogsOptions options = Options({"chief/0"});
  options.container = "sidecar";
  options.previous = true;
  options.since = 10min;
  EXPECT_EQ(Logs(options, world_.context), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "old\n");
  const LogRequest request = cluster().logs().Requests().front();
  EXPECT_EQ(request.name_space, "ns");
  EXPECT_EQ(request.since, Duration(10min));
  EXPECT_FALSE(request.follow);
}

TEST_F(LogsTest, SaysWhichLogIsMissing) {
  CreatePods();
  cluster().logs().Refuse("mnist-worker-0/tensorflow",
                          InvalidArgument("container \"tensorflow\" is waiting to start"));
  EXPECT_EQ(Logs(Options(), world_.context), view::kSucceeded);
  EXPECT_EQ(world_.Err(),
            "tfjob: the log of Pod mnist-worker-0 on https://test:6443 (context dev): container "
            "\"tensorflow\" is waiting to start\n");
  EXPECT_EQ(Logs(Options({"worker"}), world_.context), view::kFailed);
}

TEST_F(LogsTest, AJobWithoutPodsHasNoLogs) {
  EXPECT_EQ(Logs(Options(), world_.context), view::kFailed);
  EXPECT_EQ(world_.Err(),
            "tfjob: ns/mnist: it has no pods, so no logs; tfjob describe mnist shows why\n");
  EXPECT_EQ(Logs(Options({"ps"}), world_.context), view::kFailed);
  EXPECT_EQ(world_.Err(), "tfjob: ns/mnist: it has no replica ps, only chief 1, worker 2\n");
}

class FollowTest : public LogsTest {
 protected:
  void Start(LogsOptions options) {
    options.follow = true;
    follower_ = std::thread([this, options] { code_ = Logs(options, world_.context); });
  }
  void Finish() {
    cluster().WriteStatus(Kind::kTFJob, "mnist", "{" + Conditions({{"Succeeded", "True"}}) + "}");
    follower_.join();
    EXPECT_EQ(code_, view::kSucceeded) << world_.Err();
  }
  static bool AwaitTrue(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
    return condition();
  }
  void Await(size_t requests) {
    EXPECT_TRUE(AwaitTrue([&] { return cluster().logs().Requests().size() >= requests; }));
  }
  void AwaitEnded(size_t reads) {
    EXPECT_TRUE(AwaitTrue([&] { return cluster().logs().ReadsEnded() >= reads; }));
  }
  void End(const std::string& pod) {
    cluster().WriteStatus(Kind::kPod, pod, kEnded);
    cluster().logs().End(pod + "/tensorflow");
  }

  int code_ = -1;
  std::thread follower_;
};

TEST_F(FollowTest, GoesOnUntilTheJobAndItsLogsHaveEnded) {
  CreatePods();
  LogsOptions options = Options();
  options.tail_lines = 1;
  Start(options);
  Await(2);
  cluster().logs().Append("mnist-chief-0/tensorflow", "2026-11-21T09:00:03.000000000Z three\n");
  // The log of a pod that starts later must be printed from its beginning, despite `tail_lines`.
  cluster().logs().Set(
      "mnist-worker-1/tensorflow",
      "2026-11-21T09:00:04.000000000Z late\n2026-11-21T09:00:05.000000000Z later\n");
  cluster().CreatePod("mnist", "worker", 1, kRunning, "node");
  Await(3);
  for (const char* pod : {"mnist-chief-0", "mnist-worker-0", "mnist-worker-1"}) End(pod);
  Finish();
  const std::string out = world_.Out();
  for (const char* line :
       {"mnist-chief-0 | two\n", "mnist-chief-0 | three\n", "mnist-worker-0 | hello\n",
        "mnist-worker-1 | late\n", "mnist-worker-1 | later\n"}) {
    EXPECT_NE(out.find(line), std::string::npos) << line << "in\n" << out;
  }
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 5) << out;
}

TEST_F(FollowTest, ABrokenConnectionLosesAndRepeatsNoLine) {
  const std::string one = "2026-11-21T09:00:01.100000000Z one\n";
  cluster().CreatePod("mnist", "chief", 0, kRunning, "node");
  cluster().logs().Set("mnist-chief-0/tensorflow", one + "2026-11-21T09:00:01.200000000Z two\n");
  // Break the connection within the second line, after its first letter.
  cluster().logs().BreakAfter("mnist-chief-0/tensorflow", one.size() + 32);
  Start(Options({"chief"}));
  Await(2);
  End("mnist-chief-0");
  Finish();
  EXPECT_EQ(world_.Out(), "one\ntwo\n");
  EXPECT_EQ(FormatTime(*cluster().logs().Requests()[1].since_time), "2026-11-21T09:00:01Z");
}

TEST_F(FollowTest, TheLastLineMayLackItsEnd) {
  cluster().CreatePod("mnist", "chief", 0, kRunning, "node");
  cluster().logs().Set("mnist-chief-0/tensorflow",
                       "2026-11-21T09:00:01.100000000Z one\n2026-11-21T09:00:01.200000000Z no end");
  Start(Options({"chief"}));
  Await(1);
  End("mnist-chief-0");
  Finish();
  EXPECT_EQ(world_.Out(), "one\nno end\n");
}

// When a container is restarted, the log of its new run has the same name as the log of the
// previous run.
TEST_F(FollowTest, ARestartedContainerIsFollowedAnew) {
  const std::string first = "2026-11-21T09:00:01.000000000Z first\n";
  cluster().CreatePod("mnist", "chief", 0, kRunning, "node");
  cluster().logs().Set("mnist-chief-0/tensorflow", first);
  cluster().logs().End("mnist-chief-0/tensorflow");
  Start(Options({"chief"}));
  AwaitEnded(1);
  cluster().logs().Set("mnist-chief-0/tensorflow/previous",
                       first + "2026-11-21T09:00:02.000000000Z last words\n");
  cluster().logs().Set("mnist-chief-0/tensorflow", "2026-11-21T09:00:09.000000000Z second\n");
  cluster().WriteStatus(Kind::kPod, "mnist-chief-0",
                        "{phase: Succeeded, containerStatuses: [{name: tensorflow, restartCount: "
                        "1, state: {terminated: {exitCode: 0}}}]}");
  AwaitEnded(3);
  Finish();
  std::string out = world_.Out();
  const size_t words = out.find("last words\n");
  ASSERT_NE(words, std::string::npos) << out;  // before or after "second"
  EXPECT_EQ(out.erase(words, 11), "first\nsecond\n");
}

// The log of a recreated pod has the same name as the log of the previous pod. At first, the server
// refuses to return the log of the new pod.
TEST_F(FollowTest, ARecreatedPodIsFollowedAnew) {
  cluster().CreatePod("mnist", "chief", 0, kRunning, "node");
  cluster().logs().Set("mnist-chief-0/tensorflow", "2026-11-21T09:00:01.000000000Z first\n");
  cluster().logs().End("mnist-chief-0/tensorflow");
  Start(Options({"chief"}));
  AwaitEnded(1);
  cluster().logs().RefuseOnce("mnist-chief-0/tensorflow", InvalidArgument("waiting to start"));
  cluster().logs().Set("mnist-chief-0/tensorflow", "2026-11-21T09:00:09.000000000Z second\n");
  const client::DeleteOptions now{.grace_period_seconds = 0};
  ASSERT_TRUE(cluster().store().Delete({Kind::kPod, "ns", "mnist-chief-0"}, now).ok());
  cluster().CreatePod("mnist", "chief", 0, kRunning, "node");
  AwaitEnded(3);
  End("mnist-chief-0");
  Finish();
  EXPECT_EQ(world_.Out(), "first\nsecond\n");
}

// Refuses to list and watch the objects of one kind.
class Unlistable : public client::ForwardingClient {
 public:
  Unlistable(client::Client& inner, Kind kind) : ForwardingClient(inner), kind_(kind) {}
  StatusOr<std::vector<client::Object>> List(Kind kind, const std::string& name_space,
                                             const client::LabelSelector& selector) override {
    if (kind == kind_) return PermissionDenied("forbidden");
    return ForwardingClient::List(kind, name_space, selector);
  }
  // Like a real client that keeps retrying, does not call the sink.
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override {
    if (kind == kind_) return std::make_unique<client::Subscription>();
    return ForwardingClient::Subscribe(kind, name_space, selector, sink);
  }

 private:
  const Kind kind_;
};

TEST_F(FollowTest, NeedsOnlyToGetTheJob) {
  CreatePods();
  Unlistable client(cluster().store(), Kind::kTFJob);
  cluster().Serve(client);
  Start(Options());
  Await(2);
  for (const char* pod : {"mnist-chief-0", "mnist-worker-0"}) End(pod);
  Finish();
}

TEST_F(FollowTest, EndsIfThePodsCannotBeListed) {
  CreatePods();
  Unlistable client(cluster().store(), Kind::kPod);
  cluster().Serve(client);
  LogsOptions options = Options();
  options.follow = true;
  EXPECT_EQ(Logs(options, world_.context), view::kFailed);
  EXPECT_EQ(world_.Err(),
            "tfjob: https://test:6443 (context dev) refuses access to the pods of ns/mnist: "
            "forbidden; request the permission, or choose another --context or --as\n");
}

// Remembers every pod state that the watch has reported, but does not keep these states alive.
class WatchedPods : public client::ForwardingClient, public client::WatchSink {
 public:
  using ForwardingClient::ForwardingClient;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override {
    if (kind != Kind::kPod) return ForwardingClient::Subscribe(kind, name_space, selector, sink);
    sink_ = &sink;
    return ForwardingClient::Subscribe(kind, name_space, selector, *this);
  }
  void OnReplaced(std::vector<client::Object> objects) override {
    sink_->OnReplaced(std::move(objects));
  }
  void OnUpserted(client::Object object) override {
    {
      MutexLock lock(mutex_);
      states_.push_back(std::get<std::shared_ptr<const objects::Pod>>(object));
    }
    sink_->OnUpserted(std::move(object));
  }
  void OnDeleted(client::Object object) override { sink_->OnDeleted(std::move(object)); }

  // Returns how many states have been reported, and how many are still in memory.
  std::pair<size_t, size_t> Count() {
    MutexLock lock(mutex_);
    size_t kept = 0;
    for (const auto& state : states_) kept += state.expired() ? 0 : 1;
    return {states_.size(), kept};
  }

 private:
  client::WatchSink* sink_ = nullptr;
  Mutex mutex_;
  std::vector<std::weak_ptr<const objects::Pod>> states_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(FollowTest, KeepsOnlyTheLatestStatesOfThePods) {
  WatchedPods client(cluster().store());
  cluster().Serve(client);
  CreatePods();
  Start(Options());
  Await(2);
  for (int i = 0; i < 50; ++i) {
    std::string status = kRunning;
    status.insert(1, StrCat("message: ", i % 2 == 0 ? "a" : "b", ", "));
    cluster().WriteStatus(Kind::kPod, "mnist-chief-0", status);
  }
  EXPECT_TRUE(AwaitTrue([&] { return client.Count().first >= 50 && client.Count().second <= 2; }))
      << client.Count().first << " " << client.Count().second;
  for (const char* pod : {"mnist-chief-0", "mnist-worker-0"}) End(pod);
  Finish();
}

TEST_F(FollowTest, AStopEndsIt) {
  CreatePods();
  Start(Options());
  Await(2);
  world_.stop.Request(2);
  follower_.join();
  EXPECT_EQ(code_, view::kSucceeded);
}

TEST_F(LogsTest, OnATerminalControlCharactersAreEscaped) {
  cluster().CreatePod("mnist", "chief", 0, kEnded, "node");
  const std::string line =
      "\x1b[31mred\x1b]0;title\a 100%\rdone \x9b"
      "2J é";
  cluster().logs().Set("mnist-chief-0/tensorflow", line + "\n");
  EXPECT_EQ(Logs(Options({"chief"}), world_.context), view::kSucceeded) << world_.Err();
  EXPECT_EQ(world_.Out(), line + "\n");
  world_.console.terminal = true;
  EXPECT_EQ(Logs(Options({"chief"}), world_.context), view::kSucceeded) << world_.Err();
  EXPECT_EQ(world_.Out(), "\\u001b[31mred\\u001b]0;title\\u0007 100%\\u000ddone \\x9b2J é\n");
  LogsOptions follow = Options({"chief"});
  follow.follow = true;
  cluster().logs().End("mnist-chief-0/tensorflow");
  cluster().WriteStatus(Kind::kTFJob, "mnist", "{" + Conditions({{"Succeeded", "True"}}) + "}");
  EXPECT_EQ(Logs(follow, world_.context), view::kSucceeded) << world_.Err();
  EXPECT_EQ(world_.Out(), "\\u001b[31mred\\u001b]0;title\\u0007 100%\\u000ddone \\x9b2J é\n");
}

TEST_F(LogsTest, ErrorsOfTheServerCannotSteerTheTerminal) {
  cluster().CreatePod("mnist", "chief", 0, kRunning, "node");
  cluster().logs().Refuse("mnist-chief-0/tensorflow", Unavailable("away\x1b[2J"));
  EXPECT_EQ(Logs(Options({"chief"}), world_.context), view::kFailed);
  const std::string err = world_.Err();
  EXPECT_NE(err.find("away\\u001b[2J\n"), std::string::npos) << err;
  EXPECT_EQ(err.find('\x1b'), std::string::npos);
}

TEST(LineCutterTest, DividesALineWithoutEnd) {
  std::vector<size_t> sizes;
  LineCutter cutter([&](std::string_view line) {
    sizes.push_back(line.size());
    return true;
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(cutter.Add(std::string(LineCutter::kLongestLine / 2 + 1, 'x')));
  }
  cutter.Finish();
  EXPECT_EQ(sizes,
            (std::vector<size_t>{LineCutter::kLongestLine, LineCutter::kLongestLine / 2 + 3}));
}

TEST(LineCutterTest, GivesWholeLines) {
  std::vector<std::string> lines;
  LineCutter cutter([&](std::string_view line) {
    lines.emplace_back(line);
    return line != "stop";
  });
  EXPECT_TRUE(cutter.Add("one\ntw"));
  EXPECT_TRUE(cutter.Add("o\n\nrest"));
  cutter.Finish();
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "rest"}));
  EXPECT_FALSE(cutter.Add("stop\nnever\n"));
}

}  // namespace
}  // namespace tfjob::cli
