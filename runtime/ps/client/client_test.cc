// Tests the parameter client against a server that follows a script, over in-process pipes.
#include "runtime/ps/client/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/ps/client/test_client.h"

namespace tfjob::ps {
namespace {

TEST_F(ClientTest, RefusesInvalidOptions) {
  const std::pair<const char*, void (*)(ClientOptions&)> cases[] = {
      {"the cluster has no ps task", [](ClientOptions& o) { o.servers.clear(); }},
      {"the chief must provide the state of empty servers",
       [](ClientOptions& o) { o.chief = true; }},
      {"max_staleness: no gradient of a synchronous step is stale",
       [](ClientOptions& o) {
         o.max_staleness = 1;
         o.definition.mode = Mode::kSynchronous;
       }},
      {"two variables are called w",
       [](ClientOptions& o) { o.definition.state.variables[1].name = "w"; }},
  };
  for (const auto& [expected, change] : cases) {
    ClientOptions options = options_;
    change(options);
    EXPECT_EQ(ParameterClient::Create(options).status(), InvalidArgument(expected));
  }
}

TEST_F(ClientTest, ChecksTheCallersMemoryAndTheOrderOfCalls) {
  client_ = *ParameterClient::Create(options_);
  auto values = values_;
  auto gradients = gradients_;
  values.pop_back();
  EXPECT_EQ(client_->WaitReady(values).status(), InvalidArgument("expected 2 variables, got 1"));
  values.push_back(values_[0]);
  EXPECT_EQ(client_->WaitReady(values).status(), InvalidArgument("b: expected 4 bytes, got 24"));
  gradients.pop_back();
  EXPECT_EQ(client_->BeginStep(gradients, values_, 0),
            InvalidArgument("expected 2 gradients, got 1"));
  gradients.push_back(gradients_[0]);
  EXPECT_EQ(client_->BeginStep(gradients, values_, 0),
            InvalidArgument("b: the gradient has 24 bytes, the variable 4"));
  EXPECT_EQ(client_->EndStep().status(), FailedPrecondition("no step was begun"));
  EXPECT_EQ(client_->BeginStep(gradients_, values_, 0), OkStatus());
  EXPECT_EQ(client_->BeginStep(gradients_, values_, 0),
            FailedPrecondition("the previous step has not ended"));
  EXPECT_EQ(client_->Leave(), Unavailable("ps 0 (here): not connected"));
  EXPECT_TRUE(server_.heard.empty());
}

TEST_F(ClientTest, ReadsTheMeaningOfAnAnswer) {
  struct Case {
    uint16_t flags;
    int64_t staleness;
    std::string expected;
  };
  const Case cases[] = {{0, 0, "4 stale=0 dropped=0 again=0"},
                        {0, 2, "4 stale=2 dropped=0 again=0"},
                        {wire::kDropped, 0, "4 stale=0 dropped=1 again=0"},
                        {wire::kAgain, 0, "4 stale=0 dropped=0 again=1"}};
  ASSERT_EQ(Join()->global_step, 3);
  EXPECT_EQ(w_[5], 5);
  EXPECT_EQ(b_[0], 8);
  for (const Case& test : cases) {
    Answer answer = Values({.flags = test.flags, .step = 4, .value = test.staleness}, 6);
    server_.script[wire::kPush] = {{answer}};
    const StatusOr<StepResult> result = Step();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(StrCat(result->global_step, " stale=", result->staleness,
                     " dropped=", int{result->dropped}, " again=", int{result->again}),
              test.expected);
    EXPECT_EQ(w_[0], 6);
  }
}

TEST_F(ClientTest, SendsAllBytesOfAGradientAndNoneOfAnEmptyOne) {
  ASSERT_TRUE(Join().ok());
  server_.script[wire::kPush] = {{Values({.step = 4}, 1)}, {Values({.step = 9}, 1)}};
  ASSERT_TRUE(Step().ok());
  EXPECT_EQ(server_.text, Floats(1, 1) + Floats(1, 2) + Floats(1, 3) + Floats(1, 4) + Floats(1, 5) +
                              Floats(1, 6) + Floats(1, 7));
  gradients_[0] = {};
  server_.contribution = 4;
  ASSERT_TRUE(Step().ok());
  EXPECT_EQ(server_.heard,
            (std::vector<std::string>{"query", "pull step=0", "push first step=3 0.0@0+24 1.0@0+4",
                                      "push first step=4 0.0@0+0 1.0@0+4"}));
}

TEST_F(ClientTest, DropsAGradientThatIsStalerThanAllowed) {
  options_.max_staleness = 2;
  ASSERT_EQ(Join()->global_step, 3);
  const auto step = [&](int64_t of_server, uint16_t type, Answer answer) {
    server_.heard.clear();
    server_.state.step = of_server;
    server_.script[type] = {{std::move(answer)}};
    return client_->Exchange(gradients_, values_, 40);
  };
  StatusOr<StepResult> result = step(5, wire::kPush, Values({.step = 6, .value = 2}, 6));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->dropped);
  EXPECT_EQ(server_.heard.size(), 2u);
  result = step(9, wire::kPull, Values({.step = 10}, 7));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->dropped);
  EXPECT_EQ(result->global_step, 10);
  EXPECT_EQ(result->drawn, 40) << "the batch counts as drawn";
  EXPECT_EQ(w_[0], 7);
  EXPECT_EQ(server_.heard, (std::vector<std::string>{"query brief", "pull step=6"}));
  result = step(10, wire::kPush, Values({.step = 11}, 8));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->dropped);
  // The servers have been filled with the state of an earlier step.
  result = step(4, wire::kPush, Values({.step = 5}, 8));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->dropped);
  EXPECT_EQ(result->global_step, 5);
}

TEST_F(ClientTest, TheQuestionBeforeAStepLeavesTheListOfMembersAsItIs) {
  options_.max_staleness = 2;
  server_.body.back() = ',';
  server_.body +=
      R"("members":[{"task":"/job:worker/task:0","state":"connected"}],"ending":["worker 0"]})";
  ASSERT_TRUE(Join().ok());
  const auto peers = [&] {
    std::vector<std::string> names;
    for (const state::PeerState& peer : client_->Peers()) names.push_back(peer.task);
    return names;
  };
  const std::vector<std::string> expected = {"/job:ps/task:0", "/job:worker/task:0"};
  ASSERT_EQ(peers(), expected);
  for (const bool may_be_brief : {true, false}) {
    server_.may_be_brief = may_be_brief;
    server_.script[wire::kPush] = {{Values({.step = 4}, 6)}};
    const StatusOr<StepResult> result = Step();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->dropped);
    EXPECT_EQ(peers(), expected) << may_be_brief;
  }
  EXPECT_EQ(events_.Count(state::PeerEvent::Kind::kEnding), 1) << "no task has ended twice";
}

TEST_F(ClientTest, SplitsALargeShardOverFrames) {
  options_.definition.state.variables = {{.name = "large", .shape = {300'000}}};
  server_.body =
      StrCat(R"({"fingerprint":")", Fingerprint(options_.definition), R"(","servers":1})");
  server_.contribution = 1'200'000;
  std::vector<float> large(300'000), gradient(300'000, 1);
  std::fill(gradient.begin() + 262'144, gradient.end(), 3.f);  // the second frame
  values_ = {std::as_writable_bytes(std::span(large))};
  gradients_ = {std::as_bytes(std::span(std::as_const(gradient)))};
  const Answer values{{.type = wire::kValues, .flags = wire::kLast, .step = 1},
                      {{.bytes = Floats(300'000, 2)}}};
  server_.script[wire::kPull] = server_.script[wire::kPush] = {{values}};
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(Step().ok());
  EXPECT_EQ(server_.heard,
            (std::vector<std::string>{"query", "pull step=0", "push first step=1 0.0@0+1048576",
                                      "push step=1 0.0@1048576+151424"}));
  EXPECT_EQ(server_.text, Floats(37'856, 3));
}

TEST_F(ClientTest, RepeatsAnExchangeWhoseBytesAreWrong) {
  struct Case {
    uint16_t flags;
    std::vector<Bytes> parts;
    const char* expected;
  };
  const Case cases[] = {
      {0, {{.index = 2, .bytes = Floats(1, 0)}}, "bytes of shard 2, which it does not hold"},
      {0, {{.index = 0, .offset = 8, .bytes = Floats(6, 0)}}, "shard 0 has no bytes 8 to 32"},
      {0, {{.index = 1, .offset = 8, .bytes = ""}}, "shard 1 has no bytes 8 to 8"},
      {wire::kLast,
       {{.index = 2, .bytes = Floats(1, 0)}},
       "bytes of shard 2, which it does not hold"},
      {wire::kLast, {{.index = 0, .bytes = Floats(6, 0)}}, "4 bytes of its values did not arrive"},
  };
  for (const auto& [flags, parts, expected] : cases) {
    Events events;
    options_.on_event = events.sink();
    const Answer wrong{{.type = wire::kValues, .flags = flags}, parts};
    server_.script[wire::kPull] = {{wrong}, {Values({.step = 3}, 5)}};
    EXPECT_EQ(Join().status(), OkStatus());
    EXPECT_EQ(w_[5], 5);
    EXPECT_EQ(
        events.Message(state::PeerEvent::Kind::kLost, "ps 0"),
        StrCat("ps 0 (here) was lost while the variables were awaited: ps 0 (here): ", expected));
    client_.reset();
  }
}

TEST_F(ClientTest, QueriesAServerThatRefusedAStepBeforeItRepeatsIt) {
  ASSERT_TRUE(Join().ok());
  const rpc::FrameHeader refused{.type = wire::kRefused,
                                 .value = static_cast<int64_t>(StatusCode::kFailedPrecondition)};
  server_.script[wire::kPush] = {{{refused, {{.bytes = "no state"}}}}, {Values({.step = 4}, 6)}};
  server_.heard.clear();
  const StatusOr<StepResult> result = Step();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->global_step, 4);
  const std::string push = "push first step=3 0.0@0+24 1.0@0+4";
  EXPECT_EQ(server_.heard, (std::vector<std::string>{push, "query", push}));
}

TEST_F(ClientTest, AStepThatAServerKeepsRefusingEndsWithTheReason) {
  options_.refusal_patience = 250ms;
  ASSERT_TRUE(Join().ok());
  const rpc::FrameHeader refused{.type = wire::kRefused,
                                 .value = static_cast<int64_t>(StatusCode::kInvalidArgument)};
  for (int i = 0; i < 100; ++i)
    server_.script[wire::kPush].push_back({{refused, {{.bytes = "shard 0: expected bytes"}}}});
  server_.script[wire::kPush].push_back({Values({.step = 4}, 6)});
  server_.heard.clear();
  EXPECT_EQ(Step().status(), InvalidArgument("ps 0 (here): shard 0: expected bytes"));
  EXPECT_LT(server_.heard.size(), 20u) << "it was not asked as fast as it could answer";
}

TEST_F(ClientTest, TakesNoStepThatCannotBe) {
  options_.max_staleness = 2;
  ASSERT_TRUE(Join().ok());
  for (const int64_t step : {std::numeric_limits<int64_t>::min(), int64_t{-1}}) {
    server_.state.step = step;
    EXPECT_TRUE(absl::IsDataLoss(Step().status())) << step;
  }
  client_.reset();
  server_.state.step = 3;
  options_.max_staleness.reset();
  const Answer wrong = Values({.step = std::numeric_limits<int64_t>::min()}, 6);
  server_.script[wire::kPull] = {{wrong}, {Values({.step = 3}, 5)}};
  const StatusOr<StepResult> result = Join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->global_step, 3);
}

TEST_F(ClientTest, IsRefusedByAServerOfAnotherJobsShape) {
  const std::string fingerprint = StrCat(Fingerprint(Small()));
  const std::pair<std::string, const char*> cases[] = {
      {R"({"fingerprint":"1","servers":1})",
       "ps 0 (here) holds other variables, another optimizer or mode than this task has: give all "
       "tasks the same training file"},
      {R"({"fingerprint":")" + fingerprint + R"(","servers":2})",
       "ps 0 (here) holds a part of what 2 parameter servers share, but this task's TF_CONFIG has "
       "1: the job was scaled; `tfjob restart` gives all tasks the new number"},
  };
  for (const auto& [body, expected] : cases) {
    server_.body = body;
    EXPECT_EQ(Join().status(), FailedPrecondition(expected));
    client_.reset();
  }
  connector_.Listen("here", kParameterService, Task("ps", 1), server_);
  EXPECT_EQ(Join().status(), FailedPrecondition("here: expected ps 0, found ps 1"));
  client_.reset();
  options_.refusal_patience = 20s;
  options_.patience = 400ms;
  EXPECT_EQ(Join().status(),
            DeadlineExceeded("no answer within 400ms: worker 1 waits for variables from ps 0 "
                             "(here): here: expected ps 0, found ps 1"));
}

TEST_F(ClientTest, EndsAWaitWithWhatWasAwaited) {
  options_.patience = 400ms;
  server_.state.flags = 0;
  EXPECT_EQ(
      Join().status(),
      DeadlineExceeded("no answer within 400ms: worker 1 waits for variables from ps 0 (here)"));
  client_.reset();
  options_.servers = {"nowhere"};
  options_.stop_requested = [] { return true; };
  EXPECT_EQ(Join().status(), Cancelled("asked to stop while worker 1 waits for variables from ps 0 "
                                       "(nowhere): "));
  client_.reset();
  options_.stop_requested = nullptr;
  EXPECT_EQ(Join().status(),
            DeadlineExceeded("no answer within 400ms: worker 1 waits for variables "
                             "from ps 0 (nowhere): nowhere: no listener"));
  EXPECT_EQ(client_->Peers()[0].health, state::PeerHealth::kLost);
}

TEST_F(ClientTest, EndsAStepWhenTheJobEnds) {
  ASSERT_TRUE(Join().ok());
  server_.script[wire::kPush] = {{{{.type = wire::kFinished}, {}}}};
  EXPECT_EQ(Step().status(), Cancelled("the chief ended the job"));
  server_.script[wire::kLeave] = {
      {{{.type = wire::kReply, .value = static_cast<int64_t>(StatusCode::kNotFound)},
        {{.bytes = "worker 1 is not a member"}}}}};
  EXPECT_EQ(client_->Leave(), NotFound("ps 0 (here): worker 1 is not a member"));
  EXPECT_EQ(client_->Leave(), OkStatus());
}

TEST_F(ClientTest, ListsServersAndTheOtherTasksThatTrain) {
  server_.body.pop_back();
  server_.body += R"(,"members":[{"task":"/job:worker/task:1"},{"task":"/job:ps/task:1"},
      {"task":"/job:chief/task:0","address":"c:1","state":"suspected","silence_us":2500000}]})";
  state::PeerState ps{
      .task = "/job:ps/task:0", .role = state::PeerRole::kServes, .address = "here"};
  client_ = *ParameterClient::Create(options_);
  EXPECT_EQ(client_->Peers(), std::vector{ps});
  ASSERT_TRUE(Join().ok());
  std::vector<state::PeerState> peers = client_->Peers();
  ASSERT_EQ(peers.size(), 2u);
  ps.health = state::PeerHealth::kConnected;
  ps.silence = peers[0].silence;
  EXPECT_EQ(peers[0], ps);
  EXPECT_EQ(peers[1], (state::PeerState{.task = "/job:chief/task:0",
                                        .address = "c:1",
                                        .health = state::PeerHealth::kSuspected,
                                        .silence = 2500ms}));
}

// A restarted server has an empty list of tasks. A chief that waits for its workers must not
// conclude from the empty list that they have finished.
TEST_F(ClientTest, ListsATaskThatARestartedServerDoesNotKnowYet) {
  const std::string empty = server_.body;
  server_.body.pop_back();
  server_.body += R"(,"members":[{"task":"/job:chief/task:0","state":"connected"}]})";
  ASSERT_TRUE(Join().ok());
  ASSERT_EQ(client_->Peers().at(1).health, state::PeerHealth::kConnected);
  connector_.Close("here");
  server_.body = empty;
  connector_.Listen("here", kParameterService, Task("ps", 0, 2), server_);
  server_.script[wire::kPush] = {{Values({.step = 4}, 5)}};
  ASSERT_TRUE(Step().ok());
  const std::vector<state::PeerState> peers = client_->Peers();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[1].task, "/job:chief/task:0");
  EXPECT_EQ(peers[1].health, state::PeerHealth::kUnknown);
}

TEST_F(ChiefTest, FillsAnEmptyServerWithValuesSlotsAndLedger) {
  ASSERT_TRUE(Join().ok());
  EXPECT_EQ(server_.heard,
            (std::vector<std::string>{"query", "define step=0",
                                      "fill step=0 0.0@0+24 0.1@0+24 1.0@0+4 1.1@0+4",
                                      "filled step=30", "pull step=0"}));
  EXPECT_EQ(events_.Message(state::PeerEvent::Kind::kRestoring, "ps 0 (here)"),
            "the chief fills ps 0 (here)");
  ASSERT_EQ(client_->Finish(), OkStatus());
  EXPECT_EQ(server_.heard.back(), "finish step=0");
}

TEST_F(ChiefTest, DoesNotCountOnFromAnImpossibleEpoch) {
  for (const int64_t epoch : {std::numeric_limits<int64_t>::max(), int64_t{-1}}) {
    server_.state.value = epoch;
    EXPECT_EQ(Join().status(),
              DataLoss("ps 0 (here): its epoch: expected 0 to 1152921504606846976, got ", epoch));
  }
  EXPECT_EQ(std::ranges::count(server_.heard, "define step=0"), 0);
}

TEST_F(ChiefTest, DoesNotFillAServerWithAStateThatDoesNotFit) {
  snapshot_.variables[0].value = Tensor(DType::kFloat32, {3});
  EXPECT_EQ(Join().status(), InvalidArgument("w: expected float32[2,3], got float32[3]"));
  EXPECT_EQ(server_.heard, (std::vector<std::string>{"query"}));
}

// A value that is read piece by piece; reading fails if there are no elements.
class Numbers : public state::StreamedValue {
 public:
  explicit Numbers(std::vector<float> elements) : elements_(std::move(elements)) {}
  Status Read(int64_t offset, std::span<std::byte> to) const override {
    if (elements_.empty()) return DataLoss("no numbers");
    std::ranges::copy(
        std::as_bytes(std::span(elements_)).subspan(static_cast<size_t>(offset), to.size()),
        to.begin());
    return OkStatus();
  }

 private:
  const std::vector<float> elements_;
};

TEST_F(ChiefTest, FillsAnEmptyServerWithStreamedValues) {
  snapshot_.variables[0] = {};
  snapshot_.variables[0].streamed = {
      std::make_shared<Numbers>(std::vector<float>{1, 2, 3, 4, 5, 6}),
      state::StreamedConstant(DType::kFloat32, 0.25)};
  ASSERT_TRUE(Join().ok());
  EXPECT_EQ(server_.heard,
            (std::vector<std::string>{"query", "define step=0", "fill step=0 0.0@0+24",
                                      "fill step=0 0.1@0+24 1.0@0+4 1.1@0+4", "filled step=30",
                                      "pull step=0"}));
}

TEST_F(ChiefTest, FillsNothingWithValuesThatCannotBeRead) {
  options_.patience = 300ms;
  snapshot_.variables[0] = {};
  snapshot_.variables[0].streamed = {std::make_shared<Numbers>(std::vector<float>()),
                                     std::make_shared<Numbers>(std::vector<float>())};
  EXPECT_FALSE(Join().ok());
  EXPECT_EQ(std::ranges::count(server_.heard, "filled step=30"), 0);
  EXPECT_TRUE(events_.Said("the chief could not fill ps 0 (here), and tries again: no numbers"));
}

TEST_F(ChiefTest, CopiesTheStateAgainIfBytesAreMissing) {
  ASSERT_TRUE(Join().ok());
  server_.body =
      StrCat(R"({"fingerprint":")", Fingerprint(options_.definition), R"(","servers":1})");
  server_.state.flags = wire::kReady;
  const Answer values{{.type = wire::kShard},
                      {{.index = 0, .slot = 0, .bytes = Floats(6, 4)},
                       {.index = 1, .slot = 0, .bytes = Floats(1, 5)}}};
  const Answer slots{{.type = wire::kShard},
                     {{.index = 1, .slot = 1, .bytes = Floats(1, 6)},
                      {.index = 0, .slot = 1, .bytes = Floats(6, 7)}}};
  const Answer end{{.type = wire::kSnapshotEnd, .step = 31}, {{.bytes = "0 chief 0 1 2\n"}}};
  server_.script[wire::kSnapshot] = {{values, end}, {values, slots, end}};
  const StatusOr<state::Snapshot> copy = client_->TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(server_.script[wire::kSnapshot].empty());
  EXPECT_EQ(copy->global_step, 31);
  EXPECT_EQ(copy->ledger, "0 chief 0 1 2\n");
  EXPECT_EQ(copy->variables[0].value.data<float>()[5], 4);
  EXPECT_EQ(copy->variables[0].slots[0].data<float>()[5], 7);
  EXPECT_EQ(copy->variables[1].value.data<float>()[0], 5);
  EXPECT_EQ(copy->variables[1].slots[0].data<float>()[0], 6);
}

}  // namespace
}  // namespace tfjob::ps
