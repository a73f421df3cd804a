#include "operator/cli/verbs/top.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "operator/cli/verbs/progress_log.h"
#include "operator/cli/verbs/testing.h"
#include "operator/client/forwarding_client.h"

namespace tfjob::cli {
namespace {

using testing::Conditions;

constexpr char kRunning[] = "{phase: Running, podIP: 10.0.0.7}";
constexpr char kLog[] =
    "2026-11-21T09:00:00.001Z INFO train step step=100 result=\"loss=0.9 accuracy=0.5\" "
    "steps_per_s=10\n"
    "2026-11-21T09:00:01.001Z INFO train step step=200 result=\"loss=0.4121 accuracy=0.852\" "
    "steps_per_s=812.5 staleness=0 dropped=0\n"
    "2026-11-21T09:00:01.500Z INFO train saved step=200\n";

class TopTest : public ::testing::Test {
 protected:
  TopTest() {
    world_.cluster.CreateJob("mnist", "{Chief: {}, Worker: {replicas: 2}}",
                             "{" + Conditions({{"Running", "True"}}) +
                                 ", replicaStatuses: {Chief: {active: 1}, Worker: {active: 2}}}");
    world_.cluster.clock().Advance(90s);
  }
  // Returns the PROGRESS column of the only row.
  std::string Progress() {
    EXPECT_EQ(Top({}, world_.context,
                  [this](const std::string& address, const auto&) -> StatusOr<progress::Progress> {
                    asked_.push_back(address);
                    return answer_;
                  }),
              view::kSucceeded)
        << world_.Err();
    const std::string header = "NAME    STATE     READY   AGE   PROGRESS\n";
    const std::string row = "mnist   Running   3/3     90s   ";
    const std::string out = world_.Out();
    EXPECT_TRUE(out.starts_with(header + row)) << out;
    return out.substr(std::min(out.size(), header.size() + row.size()));
  }

  testing::World world_;
  std::vector<std::string> asked_;
  StatusOr<progress::Progress> answer_ = Unavailable("no route to host");
};

TEST_F(TopTest, AsksTheTrainer) {
  world_.cluster.CreatePod("mnist", "chief", 0, kRunning, "node");
  progress::Progress progress;
  progress.step = 300;
  progress.max_steps = 9380;
  progress.loss = 0.5;
  progress.seconds_left = 71;
  answer_ = progress;
  EXPECT_EQ(Progress(), "step 300/9380, loss 0.5, 1m11s left\n");
  EXPECT_EQ(asked_, std::vector<std::string>{"10.0.0.7:2222"});
}

TEST_F(TopTest, ReadsTheLogWhereThePodNetworkIsOutOfReach) {
  world_.cluster.CreatePod("mnist", "chief", 0, kRunning, "node");
  world_.cluster.logs().Set("mnist-chief-0/tensorflow", kLog);
  EXPECT_EQ(Progress(), "step 200, 812.5 steps/s, loss 0.4121, accuracy 0.852\n");
}

TEST_F(TopTest, KeepsOnlyTheEndOfALongLog) {
  world_.cluster.CreatePod("mnist", "chief", 0, kRunning, "node");
  const std::string noise = std::string(3 << 20, 'x') + "\n";
  world_.cluster.logs().Set("mnist-chief-0/tensorflow", kLog + noise);
  EXPECT_EQ(Progress(),
            "(no progress in the last 200 lines of the log of mnist-chief-0 (is its program "
            "tfjob-trainer?))\n");
  world_.cluster.logs().Append("mnist-chief-0/tensorflow", kLog);
  EXPECT_EQ(Progress(), "step 200, 812.5 steps/s, loss 0.4121, accuracy 0.852\n");
}

TEST_F(TopTest, ProgressFromAPeerCannotSteerTheTerminal) {
  world_.cluster.CreatePod("mnist", "chief", 0, kRunning, "node");
  progress::Progress progress;
  progress.state = progress::State::kWaiting;
  progress.waiting_for = "ps 0\x1b[2J\nmnist";
  answer_ = progress;
  EXPECT_EQ(Progress(), "waiting for ps 0\\u001b[2J\\u000amnist\n");
}

TEST_F(TopTest, SaysWhyThereIsNothingToTell) {
  EXPECT_EQ(Progress(), "(there is no pod mnist-chief-0)\n");
  world_.cluster.CreatePod("mnist", "chief", 0, "{phase: Pending}");
  EXPECT_EQ(Progress(), "(mnist-chief-0 is Pending)\n");
  world_.cluster.WriteStatus(objects::Kind::kPod, "mnist-chief-0", kRunning);
  world_.cluster.logs().Set("mnist-chief-0/tensorflow", "a foreign program\n");
  EXPECT_EQ(Progress(),
            "(no progress in the last 200 lines of the log of mnist-chief-0 (is its program "
            "tfjob-trainer?))\n");
}

TEST_F(TopTest, SaysWhyTheLogCannotBeHad) {
  world_.cluster.CreatePod("mnist", "chief", 0, kRunning, "node");
  world_.cluster.logs().Refuse("mnist-chief-0/tensorflow", Unavailable("the node is away"));
  EXPECT_EQ(Progress(), "(the log of mnist-chief-0: the node is away)\n");
}

TEST_F(TopTest, StopsAskingWhenNobodyAnswers) {
  world_.cluster.CreatePod("mnist", "chief", 0, kRunning, "node");
  world_.cluster.logs().Set("mnist-chief-0/tensorflow", kLog);
  ProgressReader reader(world_.context, [this](const std::string& address, const auto&) {
    asked_.push_back(address);
    return answer_;
  });
  const auto job = GetJob(world_.cluster, "mnist");
  for (int i = 0; i < 5; ++i) reader.TextOf(job->job);
  EXPECT_EQ(asked_.size(), 2u);
}

// Returns these statuses from successive calls of List(). Then requests `stop`.
class UnsteadyServer : public client::ForwardingClient {
 public:
  UnsteadyServer(client::Client& inner, std::vector<Status> answers, StopSource& stop)
      : ForwardingClient(inner), answers_(std::move(answers)), stop_(stop) {}
  StatusOr<std::vector<client::Object>> List(objects::Kind kind, const std::string& name_space,
                                             const client::LabelSelector& selector) override {
    if (kind != objects::Kind::kTFJob) return ForwardingClient::List(kind, name_space, selector);
    const Status answer = answers_.at(calls_++);
    if (calls_ == answers_.size()) stop_.Request(2);
    if (!answer.ok()) return answer;
    return ForwardingClient::List(kind, name_space, selector);
  }
  size_t calls() const { return calls_; }

 private:
  const std::vector<Status> answers_;
  StopSource& stop_;
  size_t calls_ = 0;
};

TEST_F(TopTest, AWatchSurvivesAServerThatIsAwayForAWhile) {
  const Status away = Unavailable("connection refused");
  UnsteadyServer server(world_.cluster.store(),
                        {OkStatus(), away, away, OkStatus(), DeadlineExceeded("late")},
                        world_.stop);
  world_.cluster.Serve(server);
  const TopOptions options{.watch = true, .interval = 1ms};
  EXPECT_EQ(Top(options, world_.context), view::kSucceeded);
  EXPECT_EQ(server.calls(), 5u);
  const std::string row = "mnist   Running   3/3     90s   (there is no pod mnist-chief-0)\n";
  const std::string table = "NAME    STATE     READY   AGE   PROGRESS\n" + row;
  EXPECT_EQ(world_.Out(), table + table);
  const std::string err = world_.Err();
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 2) << err;
  EXPECT_NE(err.find("does not answer: connection refused"), std::string::npos) << err;
  EXPECT_NE(err.find("does not answer: late"), std::string::npos) << err;
}

TEST_F(TopTest, AWatchEndsIfTheServerRefusesOrNeverAnswered) {
  const std::vector<std::vector<Status>> cases = {{OkStatus(), PermissionDenied("no"), OkStatus()},
                                                  {Unavailable("away"), OkStatus()}};
  for (const std::vector<Status>& answers : cases) {
    StopSource stop;
    UnsteadyServer server(world_.cluster.store(), answers, stop);
    world_.cluster.Serve(server);
    EXPECT_EQ(Top({.watch = true, .interval = 1ms}, world_.context), view::kFailed);
    EXPECT_EQ(server.calls(), answers.size() - 1);
    EXPECT_NE(world_.Err(), "");
  }
}

TEST(ProgressLogTest, ReadsBothLogFormats) {
  const auto json = ProgressFromLog(
      "{\"time\":\"t\",\"level\":\"INFO\",\"room\":\"train\",\"message\":\"step\",\"step\":\"7\","
      "\"result\":\"loss=2\",\"steps_per_s\":\"3\"}\n");
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ(json->step, 7);
  EXPECT_EQ(json->loss, 2);
  const auto evaluated = ProgressFromLog(
      "t INFO train evaluated step=40 examples=100 result=\"loss=1 accuracy=0.9\"\nlast words");
  ASSERT_TRUE(evaluated.has_value());
  EXPECT_EQ(evaluated->step, 40);
  EXPECT_EQ(evaluated->metrics.at("accuracy"), 0.9);
}

TEST(ProgressLogTest, AForeignLogTellsNothing) {
  for (const char* log :
       {"", "\n\n", "step=3", "{not json\n", "{\"message\":3}\n", "x train step "}) {
    EXPECT_FALSE(ProgressFromLog(log).has_value()) << log;
  }
  EXPECT_TRUE(ProgressFromLog("x train step step=\"unfinished").has_value());
}

}  // namespace
}  // namespace tfjob::cli
