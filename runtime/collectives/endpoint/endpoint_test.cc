// Tests groups whose tasks run in one process, with real servers and sockets on loopback.
#include "runtime/collectives/endpoint/endpoint.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <latch>

#include "runtime/collectives/endpoint/test_tasks.h"
#include "runtime/state/run_failure.h"

namespace tfjob::collectives {
namespace {

TEST_F(EndpointTest, FormsAGenerationOfAllTasks) {
  EXPECT_EQ(All([&](TestTask& task) { return task.Join(&task == &At(0) ? -1 : 5); }),
            std::vector<Status>(3));
  for (size_t i = 0; i < 3; ++i) {
    const Generation& generation = At(i).generation();
    EXPECT_EQ(generation.number, 1);
    EXPECT_EQ(generation.rank, static_cast<int>(i));
    EXPECT_EQ(generation.source, 1);
    ASSERT_EQ(generation.members.size(), 3u);
    EXPECT_EQ(generation.members[2].task, "worker 1");
    EXPECT_EQ(generation.members[2].address, tasks_[2].address);
    EXPECT_EQ(generation.members[2].step, 5);
  }
  ExpectBarrier();
  for (const state::PeerState& peer : At(1).group().Peers()) {
    EXPECT_EQ(peer.health, state::PeerHealth::kConnected) << peer.task;
  }
}

TEST_F(EndpointTest, ALostMemberAbortsTheOthersAndItsReplacementJoins) {
  JoinAll();
  ExpectBarrier();
  running_[2].reset();
  const auto results =
      All([](TestTask& task) { return task.generation().communicator->Barrier(); });
  for (const size_t i : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(results[i].code(), StatusCode::kUnavailable);
    EXPECT_NE(Message(results[i]).find(StrCat("worker 1 (", tasks_[2].address, ")")),
              std::string::npos)
        << results[i];
  }
  Start(2);
  JoinAll();
  EXPECT_EQ(At(0).generation().number, 2);
  ExpectBarrier();
}

TEST_F(EndpointTest, TheOthersWaitForALostLeaderAndItsReplacementCountsOn) {
  JoinAll();
  running_[0].reset();
  EXPECT_NE(At(1).Await(Kind::kLost).find(StrCat("chief 0 (", tasks_[0].address, ")")),
            std::string::npos);
  const auto results =
      All([](TestTask& task) { return task.generation().communicator->Barrier(); });
  EXPECT_EQ(results[1].code(), StatusCode::kUnavailable);
  EXPECT_EQ(results[2].code(), StatusCode::kUnavailable);
  Start(0);
  JoinAll();
  EXPECT_EQ(At(2).generation().number, 2);
  ExpectBarrier();
}

TEST_F(EndpointTest, RefusesATaskThatDoesNotFit) {
  std::thread others(
      [&] { EXPECT_EQ(At(0).Join(-1, "model: a\nbatch: 8\n").code(), StatusCode::kCancelled); });
  EXPECT_EQ(At(1).Join(-1, "model: a\nbatch: 9\n"),
            FailedPrecondition("this task does not fit the group: chief 0 (", tasks_[0].address,
                               ") has 'batch: 8', worker 0 (", tasks_[1].address,
                               ") has 'batch: 9': give all tasks the same program, training file "
                               "and data"));
  At(0).Stop();
  others.join();
}

TEST_F(EndpointTest, RefusesATaskWithAnotherProgram) {
  std::thread others([&] {
    EXPECT_EQ(At(0).Join(-1, "program: 1.2.0\nmodel: a\n").code(), StatusCode::kCancelled);
  });
  EXPECT_EQ(At(1).Join(-1, "program: 1.3.0\nmodel: a\n"),
            FailedPrecondition("this task does not fit the group: chief 0 (", tasks_[0].address,
                               ") has 'program: 1.2.0', worker 0 (", tasks_[1].address,
                               ") has 'program: 1.3.0': give all tasks the same program, training "
                               "file and data"));
  At(0).Stop();
  others.join();
}

class ReportingTest : public EndpointTest {
 protected:
  void SetUp() override {
    report_interval_ = 50ms;
    EndpointTest::SetUp();
  }
};

TEST_F(ReportingTest, ATaskOfAnotherJobIsRefusedAndSaysWhy) {
  job_ = "job-b";
  Start(1);
  std::thread stranger([&] { EXPECT_EQ(At(1).Join().code(), StatusCode::kCancelled); });
  std::thread leader([&] { EXPECT_EQ(At(0).Join().code(), StatusCode::kCancelled); });
  const std::string refusal =
      At(1).Await(Kind::kWaiting, "refused: this is chief 0 of job 'job-a' attempt 1", 1);
  EXPECT_NE(refusal.find(StrCat("waits for chief 0 (", tasks_[0].address, ")")), std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find("the caller is worker 0 of job 'job-b' attempt 1"), std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find("give the jobs different ports"), std::string::npos) << refusal;
  // The group does not count the stranger as its worker 0.
  EXPECT_NE(At(0).Await(Kind::kWaiting, StrCat("worker 0 (", tasks_[1].address, ")"), 1), "");
  At(0).Stop();
  At(1).Stop();
  stranger.join();
  leader.join();
}

// Worker 1 is not there. The chief and worker 0 name it again and again until it has come.
TEST_F(ReportingTest, NamesAnAbsentTaskAtEveryInterval) {
  running_[2].reset();
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{0}, size_t{1}})
    waiting.emplace_back([this, i] { EXPECT_EQ(At(i).Join(), OkStatus()); });
  const std::string absent =
      StrCat("waits for worker 1 (", tasks_[2].address, ") to join the group");
  for (const size_t i : {size_t{0}, size_t{1}})
    EXPECT_NE(At(i).Await(Kind::kWaiting, absent, 3), "") << i;
  Start(2);
  EXPECT_EQ(At(2).Join(), OkStatus());
  for (std::thread& thread : waiting) thread.join();
}

TEST_F(EndpointTest, AStopEndsTheWait) {
  std::thread stopper([&] {
    EXPECT_NE(At(0).Await(Kind::kConnected), "");
    At(0).Stop();
  });
  EXPECT_EQ(At(0).Join().code(), StatusCode::kCancelled);
  stopper.join();
}

TEST_F(EndpointTest, TheEndReachesThoseWhoAreThereAndThoseWhoComeLater) {
  JoinAll();
  running_[2].reset();
  const auto began = SteadyNow();
  std::thread end(
      [&] { EXPECT_EQ(At(0).group().Fail(state::RunFailure("the loss is NaN")), OkStatus()); });
  EXPECT_EQ(At(1).Join(), state::RunFailure("the loss is NaN"));
  Start(2);
  EXPECT_EQ(At(2).Join(), state::RunFailure("the loss is NaN"));
  end.join();
  EXPECT_LT(SteadyNow() - began, 5s);  // Fail did not wait for longer than necessary
  EXPECT_EQ(At(1).group().Finish().code(), StatusCode::kFailedPrecondition);
}

TEST_F(EndpointTest, TheOthersDoNotWaitForATaskThatHasLeft) {
  JoinAll();
  EXPECT_EQ(At(2).group().Leave(), OkStatus());
  const std::unique_ptr<TestTask> left = std::move(running_[2]);
  const auto results =
      All([](TestTask& task) { return task.generation().communicator->Barrier(); });
  EXPECT_EQ(results[0].code(), StatusCode::kUnavailable);
  EXPECT_EQ(results[1].code(), StatusCode::kUnavailable);
  JoinAll();
  EXPECT_EQ(At(1).generation().members.size(), 2u);
  ExpectBarrier();
}

TEST_F(EndpointTest, TheOthersWaitForTheReplacementOfATaskThatHasDeparted) {
  JoinAll();
  EXPECT_EQ(At(2).group().Depart(), OkStatus());
  running_[2].reset();
  std::vector<std::thread> others;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    others.emplace_back([this, i] { EXPECT_EQ(At(i).Join(7), OkStatus()); });
  }
  EXPECT_NE(At(0).Await(Kind::kLost), "");
  Start(2);
  EXPECT_EQ(At(2).Join(), OkStatus());
  for (std::thread& other : others) other.join();
  EXPECT_EQ(At(0).generation().members.size(), 3u);
  ExpectBarrier();
}

TEST_F(EndpointTest, ATaskThatIsStoppedInAWaitDepartsAndMayThenLeave) {
  std::thread leader([&] { EXPECT_EQ(At(0).Join(7), OkStatus()); });
  EXPECT_NE(At(2).Await(Kind::kConnected), "");
  At(2).Stop();
  EXPECT_EQ(At(2).Join().code(), StatusCode::kCancelled);
  EXPECT_EQ(At(2).group().Leave(), OkStatus());
  EXPECT_EQ(At(1).Join(7), OkStatus());
  leader.join();
  EXPECT_EQ(At(0).generation().members.size(), 2u);
}

TEST_F(EndpointTest, AnyTaskCanEndTheJobWithAFailure) {
  JoinAll();
  EXPECT_EQ(At(2).group().Fail(state::RunFailure("the loss is NaN")), OkStatus());
  EXPECT_EQ(At(0).Join(), state::RunFailure("the loss is NaN"));
  EXPECT_EQ(At(1).Join(), state::RunFailure("the loss is NaN"));
}

// Waits for other ranks until it is interrupted, as may happen while shared memory is set up.
StatusOr<std::unique_ptr<Communicator>> WaitForInterrupt(int, std::vector<wire::UniqueFd> sockets,
                                                         const Interrupt& interrupt) {
  const auto other = std::ranges::find_if(sockets, &wire::UniqueFd::valid);
  const auto deadline = RealClock().Monotonic() + 20s;
  while (RealClock().Monotonic() < deadline) {
    RETURN_IF_ERROR(interrupt());
    (void)wire::AwaitSocket(other->get(), POLLPRI, RealClock().Monotonic() + 10ms);
  }
  return DeadlineExceeded("not interrupted");
}

class UnfinishedCommunicatorTest : public EndpointTest {
 protected:
  void SetUp() override {
    make_communicator_ = [this](int rank, std::vector<wire::UniqueFd> sockets,
                                const Interrupt& interrupt) {
      making_.count_down();
      auto made = WaitForInterrupt(rank, std::move(sockets), interrupt);
      EXPECT_EQ(made.status().code(), StatusCode::kUnavailable) << made.status();
      made_.count_down();
      return made;
    };
    EndpointTest::SetUp();
  }
  std::latch making_{3}, made_{3};
};

// Worker 1 is asked to stop. The other tasks leave the generation, and wait for worker 1's
// replacement.
TEST_F(UnfinishedCommunicatorTest, AStopEndsTheMakingOfCommunicatorsOnAllTasks) {
  std::thread stopper([&] {
    making_.wait();
    At(2).Stop();
    made_.wait();
    At(0).Stop();
    At(1).Stop();
  });
  for (const Status& joined : All([](TestTask& task) { return task.Join(7); })) {
    EXPECT_EQ(joined.code(), StatusCode::kCancelled) << joined;
  }
  stopper.join();
}

TEST_F(EndpointTest, TakesOneDataSocketPerMemberAndNoneOfStrangers) {
  JoinAll();
  const auto dial = [&](const rpc::Identity& as, const std::string& channel) {
    return rpc::DialData(tasks_[2].address, channel, as, TestKey(), 10s).status();
  };
  const std::string channel = StrCat("group-", At(0).identity().incarnation, "-1");
  EXPECT_EQ(dial(At(1).identity(), channel),
            FailedPrecondition(tasks_[2].address,
                               ": refused: worker 0 is already connected to worker 1 in "
                               "generation 1"));
  rpc::Identity earlier = At(1).identity();
  earlier.incarnation = 1;
  EXPECT_EQ(dial(earlier, channel).code(), StatusCode::kFailedPrecondition);
  rpc::Identity stranger = At(1).identity();
  stranger.task_index = 5;
  EXPECT_EQ(dial(stranger, channel).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(dial(At(1).identity(), "other").code(), StatusCode::kInvalidArgument);
  ExpectBarrier();  // the generation continues
}

class StuckTest : public EndpointTest {
 protected:
  void SetUp() override {
    liveness_ = {.suspect_after = 200ms, .lease = 10s};
    EndpointTest::SetUp();
  }
};

TEST_F(StuckTest, NamesTheRankThatTheOthersWaitFor) {
  JoinAll();
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    waiting.emplace_back(
        [this, i] { EXPECT_EQ(At(i).generation().communicator->Barrier(), OkStatus()); });
  }
  const std::string text = At(1).Await(Kind::kStuck);
  EXPECT_NE(text.find(StrCat("worker 1 (", tasks_[2].address,
                             ") in operation 1 (Barrier) of generation 1")),
            std::string::npos)
      << text;
  EXPECT_EQ(At(1).group().Peers()[1].health, state::PeerHealth::kStuck);
  EXPECT_EQ(At(2).generation().communicator->Barrier(), OkStatus());
  for (std::thread& thread : waiting) thread.join();
  EXPECT_NE(At(1).Await(Kind::kReturned), "");
}

TEST_F(SocketGroupTest, SumsBeforeAndAfterAMemberIsReplaced) {
  JoinAll();
  ExpectSum();
  running_[1].reset();
  const std::vector<Status> results = All(Sum);
  for (const size_t i : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(results[i].code(), StatusCode::kUnavailable) << results[i];
    EXPECT_NE(Message(results[i]).find(StrCat("worker 0 (", tasks_[1].address, ")")),
              std::string::npos)
        << results[i];
  }
  Start(1);
  JoinAll();
  ExpectSum();
}

class Ipv6GroupTest : public SocketGroupTest {
 protected:
  void SetUp() override {
    if (!HasIpv6()) GTEST_SKIP() << "no IPv6 here";
    SocketGroupTest::SetUp();
  }
  std::string Address() override {
    const std::string address = SocketGroupTest::Address();
    return StrCat("[::1]", address.substr(address.find(':')));
  }

 private:
  static bool HasIpv6() {
    const wire::UniqueFd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in6 loopback{.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return probe.valid() &&
           bind(probe.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
  }
};

TEST_F(Ipv6GroupTest, SumsAndReplacesAMember) {
  JoinAll();
  EXPECT_TRUE(At(0).generation().members[1].address.starts_with("[::1]:"));
  ExpectSum();
  running_[2].reset();
  const std::vector<Status> results = All(Sum);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(results[i].code(), StatusCode::kUnavailable) << results[i];
    EXPECT_NE(Message(results[i]).find(StrCat("worker 1 (", tasks_[2].address, ")")),
              std::string::npos)
        << results[i];
  }
  Start(2);
  JoinAll();
  ExpectSum();
}

// The chief does not take part in the exchange, and worker 0 is asked to stop.
TEST_F(SocketGroupTest, ATaskThatMustEndWaitsForAMomentAndEndsNoOther) {
  JoinAll();
  ExpectSum();
  std::vector<Status> results(3);
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{1}, size_t{2}}) {
    waiting.emplace_back([&, i] { results[i] = Sum(At(i)); });
  }
  At(1).Stop();
  for (std::thread& thread : waiting) thread.join();
  for (const size_t i : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(results[i].code(), StatusCode::kAborted) << results[i];
    EXPECT_NE(Message(results[i])
                  .find(StrCat("worker 0 (", tasks_[1].address,
                               ") was asked to end, and has waited for ")),
              std::string::npos)
        << results[i];
  }
  EXPECT_EQ(At(1).Join(7).code(), StatusCode::kCancelled);
  Start(1);
  JoinAll();
  ExpectSum();
}

TEST_F(SocketGroupTest, SumsAfterTheLeaderIsReplaced) {
  JoinAll();
  running_[0].reset();
  for (const Status& result : All(Sum)) {  // the lost leader's result stays OK
    EXPECT_TRUE(result.ok() || absl::IsUnavailable(result)) << result;
  }
  Start(0);
  JoinAll();
  ExpectSum();
}

TEST_F(SocketGroupTest, ARankThatDropsItsCommunicatorEndsNoOperationOfTheOthers) {
  for (int round = 0; round < 10; ++round) {
    JoinAll();
    EXPECT_EQ(All([](TestTask& task) {
                const Status sum = Sum(task);
                task.generation().communicator.reset();
                return sum;
              }),
              std::vector<Status>(running_.size()));
  }
}

class StuckSocketTest : public SocketGroupTest {
 protected:
  void SetUp() override {
    liveness_ = {.suspect_after = 200ms, .lease = 10s};
    SocketGroupTest::SetUp();
  }
};

// In a large AllReduce, every rank waits for other ranks, which are waiting too.
TEST_F(StuckSocketTest, NamesTheRankThatHasNotBegunALargeExchange) {
  JoinAll();
  ExpectSum();
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{0}, size_t{2}}) {
    waiting.emplace_back([this, i] { EXPECT_EQ(Sum(At(i)), OkStatus()); });
  }
  for (const size_t i : {size_t{0}, size_t{2}}) {
    const std::string text = At(i).Await(Kind::kStuck);
    EXPECT_NE(text.find(StrCat("worker 0 (", tasks_[1].address, ") in operation 2 (AllReduce)")),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(Sum(At(1)), OkStatus());
  for (std::thread& thread : waiting) thread.join();
}

class ExchangeTimeoutTest : public SocketGroupTest {
 protected:
  void SetUp() override {
    liveness_ = {.suspect_after = 200ms, .lease = 10s};
    exchange_timeout_ = 1s;
    SocketGroupTest::SetUp();
  }
};

TEST_F(ExchangeTimeoutTest, EndsAnExchangeAndNamesTheTaskThatIsWaitedFor) {
  JoinAll();
  ExpectSum();
  std::vector<Status> results(2);
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    waiting.emplace_back([&, i] { results[i] = Sum(At(i)); });
  }
  for (std::thread& thread : waiting) thread.join();
  // The first rank whose limit passes ends the generation. The other rank may learn of this before
  // its own limit passes.
  EXPECT_TRUE(absl::IsDeadlineExceeded(results[0]) || absl::IsDeadlineExceeded(results[1]))
      << results[0] << results[1];
  for (const Status& result : results) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(result) || absl::IsUnavailable(result)) << result;
    EXPECT_NE(Message(result).find(StrCat("worker 1 (", tasks_[2].address, ")")), std::string::npos)
        << result;
  }
}

// The wait lasts three times as long as the limit.
TEST_F(ExchangeTimeoutTest, DoesNotCountWhileTheTaskSaves) {
  JoinAll();
  ExpectSum();
  At(2).group().Announce(state::WorkPhase::kSaving, 600s);
  std::vector<Status> results(2);
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    waiting.emplace_back([&, i] { results[i] = Sum(At(i)); });
  }
  const std::string text = At(1).Await(Kind::kStuck, "has been saving a checkpoint for ", 1);
  EXPECT_NE(text.find(StrCat("worker 1 (", tasks_[2].address, "), which")), std::string::npos)
      << text;
  const auto end = SteadyNow() + 3 * exchange_timeout_;
  while (SteadyNow() < end && At(0).group().IsCurrent(At(0).generation().number)) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(At(0).group().IsCurrent(At(0).generation().number));
  At(2).group().Announce(state::WorkPhase::kNone, 0s);
  EXPECT_EQ(Sum(At(2)), OkStatus());
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(results, std::vector<Status>(2));
}

// The chief may take a long time to read the state, so the time before it shares the state does not
// count.
TEST_F(ExchangeTimeoutTest, DoesNotCountBeforeTheStateIsShared) {
  EXPECT_EQ(All([](TestTask& task) { return task.Join(7, "model: a\n", /*shares=*/false); }),
            std::vector<Status>(3));
  std::vector<std::thread> waiting;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    waiting.emplace_back([&, i] { EXPECT_EQ(Sum(At(i)), OkStatus()); });
  }
  const auto has_waited = [&] {
    const Waiting wait = At(0).generation().communicator->CurrentWait();
    return wait.on >= 0 && RealClock().Monotonic() - wait.since > 3 * exchange_timeout_;
  };
  const auto deadline = SteadyNow() + 20s;
  while (!has_waited() && SteadyNow() < deadline) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(has_waited());
  EXPECT_EQ(Sum(At(2)), OkStatus());
  for (std::thread& thread : waiting) thread.join();
}

}  // namespace
}  // namespace tfjob::collectives
