#include "operator/kube/leader/lease.h"

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "operator/kube/doubles/lease_candidate.h"

namespace tfjob::kube {
namespace {

using client::FaultyClient;
using client::Verb;
using objects::Kind;

class LeaseTest : public ::testing::Test {
 protected:
  LeaseRecord Stored() {
    return *ParseLease(std::make_shared<const Json>(*server_.GetJson(kLeaseKey)));
  }
  // Writes the lease as another process would, regardless of who holds it.
  void Overwrite(const std::string& holder, Time renewed) {
    LeaseRecord record = Stored();
    record.holder = holder;
    record.renew_time = renewed;
    ASSERT_TRUE(
        server_.Update(Kind::kLease, ToJson(record, kLeaseKey.name_space, kLeaseKey.name)).ok());
  }

  TestClock clock_;
  store::Store server_{StoreOptions()};
};

TEST_F(LeaseTest, TheFirstCandidateCreatesTheLeaseAndLeads) {
  Candidate a(server_, "a", clock_);
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(a.Step(), Duration(2s));
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(a.started, 1);
  EXPECT_EQ(a.leaders, std::vector<std::string>{"a"});
  const LeaseRecord record = Stored();
  EXPECT_EQ(record.holder, "a");
  EXPECT_EQ(record.duration, Duration(15s));
  EXPECT_EQ(record.transitions, 0);
  EXPECT_EQ(record.acquire_time, clock_.wall);
}

TEST(LeaseRecordTest, OddLeasesAreErrorsOrClamped) {
  const auto parse = [](const char* text) {
    return ParseLease(std::make_shared<const Json>(*ParseJson(text, "test")));
  };
  for (const char* text : {"[]", "7", R"({"metadata":[]})", R"({"spec":"x"})"}) {
    EXPECT_EQ(parse(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  const auto record = parse(R"({"spec":{"leaseTransitions":9223372036854775807}})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->transitions, 2147483647);
}

TEST_F(LeaseTest, RenewingWritesOnceAndReadsNothing) {
  Candidate a(server_, "a", clock_);
  a.Step();
  const Time acquired = clock_.wall;
  const size_t before = a.client.Calls().size();
  clock_.Advance(2s);
  a.Step();
  const std::vector<client::Call> calls = a.client.Calls();
  ASSERT_EQ(calls.size(), before + 1);
  EXPECT_EQ(calls.back().verb, Verb::kUpdate);
  EXPECT_EQ(Stored().acquire_time, acquired);
  EXPECT_EQ(Stored().renew_time, clock_.wall);
  EXPECT_EQ(a.started, 1);
  EXPECT_EQ(a.slow_renewals, 0);
}

TEST_F(LeaseTest, OthersWaitAsLongAsTheHolderRenews) {
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_);
  for (int i = 0; i < 30; ++i) {
    a.Step();
    b.Step();
    EXPECT_TRUE(a.leads());
    EXPECT_FALSE(b.leads());
    clock_.Advance(2s);
  }
  EXPECT_EQ(b.election->leader(), "a");
}

TEST_F(LeaseTest, BystandersTryAtRandomTimesLeadersAtRegularOnes) {
  const auto half = [] { return 0.5; };
  Candidate a(server_, "a", clock_, half);
  Candidate b(server_, "b", clock_, half);
  EXPECT_EQ(a.Step(), Duration(2s));
  EXPECT_EQ(b.Step(), Duration(3200ms));
}

TEST_F(LeaseTest, TakesOverWhenTheRecordStandsStillForItsDuration) {
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_);
  a.Step();
  clock_.Advance(1s);
  b.Step();  // sees the record for the first time: the 15 s begin
  clock_.Advance(14999ms);
  b.Step();
  EXPECT_FALSE(b.leads());
  clock_.Advance(1ms);
  b.Step();
  EXPECT_TRUE(b.leads());
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(Stored().transitions, 1);
  EXPECT_EQ(Stored().acquire_time, clock_.wall);
}

TEST_F(LeaseTest, TheNextAttemptIsNotLaterThanTheEndOfTheHoldersLease) {
  const auto latest = [] { return 1.0; };
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_, latest);
  a.Step();
  Duration waited(0);
  for (const Duration expected : {4400ms, 4400ms, 4400ms, 1800ms}) {
    EXPECT_EQ(b.Step(), expected);
    EXPECT_FALSE(b.leads());
    clock_.Advance(expected);
    waited += expected;
  }
  EXPECT_EQ(waited, Duration(15s));
  b.client.Inject(FaultOf(Verb::kUpdate, Unavailable("lost"), false));
  EXPECT_EQ(b.Step(), Duration(4400ms));  // the attempt failed, so the usual delay applies
  b.Step();
  EXPECT_TRUE(b.leads());
}

TEST_F(LeaseTest, TheHoldersOwnDurationCounts) {
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_);
  a.Step();
  Json lease = *server_.GetJson(kLeaseKey);
  lease["spec"]["leaseDurationSeconds"] = 40;
  ASSERT_TRUE(server_.Update(Kind::kLease, lease).ok());
  b.Step();
  clock_.Advance(39s);
  b.Step();
  EXPECT_FALSE(b.leads());
  clock_.Advance(1s);
  b.Step();
  EXPECT_TRUE(b.leads());
}

TEST_F(LeaseTest, NeverComparesTheTimesInTheRecordWithItsOwnClock) {
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_);
  a.Step();
  // A holder that renews the lease must count as alive, even if its clock is a year behind.
  for (int i = 0; i < 20; ++i) {
    Overwrite("c", clock_.wall - 24h * 365);
    clock_.Advance(5s);
    b.Step();
    EXPECT_FALSE(b.leads());
  }
  // A holder that no longer renews the lease must count as gone, even if its clock is a year ahead.
  Overwrite("c", clock_.wall + 24h * 365);
  b.Step();
  clock_.Advance(15s);
  b.Step();
  EXPECT_TRUE(b.leads());
}

TEST_F(LeaseTest, JumpsOfTheWallClockChangeNothing) {
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_);
  for (const Duration jump : {Duration(0), Duration(24h), Duration(-48h), Duration(24h)}) {
    clock_.wall += jump;
    a.Step();
    b.Step();
    EXPECT_TRUE(a.leads());
    EXPECT_FALSE(b.leads());
    clock_.Advance(2s);
  }
  EXPECT_EQ(a.lost, 0);
}

TEST_F(LeaseTest, WithoutRenewalForTheDeadlineLeadershipIsLostBeforeAnyoneTakesOver) {
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_);
  a.Step();
  b.Step();
  a.Cut();
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(2s);
    EXPECT_EQ(a.Step(), Duration(2s));
  }
  clock_.Advance(1999ms);
  EXPECT_TRUE(a.leads());
  clock_.Advance(1ms);
  EXPECT_FALSE(a.leads());  // leadership expires without a call of Step
  EXPECT_EQ(a.lost, 0);
  EXPECT_EQ(a.Step(), std::nullopt);
  EXPECT_EQ(a.lost, 1);
  EXPECT_FALSE(a.held_when_lost);
  EXPECT_EQ(a.reason.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(Message(a.reason).find("connection refused"), std::string::npos) << a.reason;
  b.Step();
  EXPECT_FALSE(b.leads());
  clock_.Advance(5s);
  b.Step();
  EXPECT_TRUE(b.leads());

  // The candidate never leads again, even if the network works again and the lease is free.
  a.client.Clear();
  b.election->Stop();
  EXPECT_EQ(a.Step(), std::nullopt);
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(a.lost, 1);
}

TEST_F(LeaseTest, ARenewalWhoseAnswerComesTooLateDoesNotCount) {
  Candidate a(server_, "a", clock_);
  a.Step();
  clock_.Advance(2s);
  int lost_during_call = -1;
  client::Fault slow = FaultOf(Verb::kUpdate, OkStatus());
  slow.before_call = [&] {
    clock_.Advance(8s);
    a.election->CheckDeadline();  // as the thread lease-watch does
    lost_during_call = a.lost;
  };
  a.client.Inject(slow);
  EXPECT_EQ(a.Step(), std::nullopt);
  EXPECT_EQ(lost_during_call, 1);
  EXPECT_EQ(a.lost, 1);
  EXPECT_FALSE(a.leads());
}

TEST_F(LeaseTest, ARenewalCountsFromItsBeginning) {
  Candidate a(server_, "a", clock_);
  a.Step();
  clock_.Advance(2s);
  client::Fault slow = FaultOf(Verb::kUpdate, OkStatus());
  slow.before_call = [&] { clock_.Advance(4s); };
  a.client.Inject(slow);
  a.Step();
  clock_.Advance(5999ms);
  EXPECT_TRUE(a.leads());
  clock_.Advance(1ms);
  EXPECT_FALSE(a.leads());
}

TEST_F(LeaseTest, ALostAnswerIsNoLoss) {
  for (const Verb verb : {Verb::kCreate, Verb::kUpdate}) {
    store::Store server{StoreOptions()};
    Candidate a(server, "a", clock_);
    a.client.Inject(FaultOf(verb, Unavailable("the connection broke"), true));
    for (int i = 0; i < 5; ++i) {
      a.Step();
      clock_.Advance(2s);
    }
    EXPECT_TRUE(a.leads()) << client::Name(verb);
    EXPECT_EQ(a.lost, 0);
    EXPECT_EQ(a.started, 1);
  }
}

TEST_F(LeaseTest, WhoIsOvertakenStopsAtOnce) {
  Candidate a(server_, "a", clock_);
  a.Step();
  clock_.Advance(2s);
  Overwrite("b", clock_.wall);
  EXPECT_EQ(a.Step(), std::nullopt);
  EXPECT_EQ(a.lost, 1);
  EXPECT_EQ(a.reason.code(), StatusCode::kAborted);
  EXPECT_NE(Message(a.reason).find("\"b\""), std::string::npos) << a.reason;
  EXPECT_EQ(Stored().holder, "b");
}

TEST_F(LeaseTest, OneOfTwoThatTryAtTheSameTimeLeads) {
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_);
  client::Fault meanwhile = FaultOf(Verb::kCreate, OkStatus());
  meanwhile.before_call = [&] { b.Step(); };
  a.client.Inject(meanwhile);
  EXPECT_EQ(a.Step(), Duration(2s));
  EXPECT_TRUE(b.leads());
  EXPECT_FALSE(a.leads());

  clock_.Advance(1s);
  a.Step();
  clock_.Advance(15s);
  meanwhile = FaultOf(Verb::kUpdate, OkStatus());
  meanwhile.before_call = [&] { Overwrite("c", clock_.wall); };
  a.client.Inject(meanwhile);
  a.Step();
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(Stored().holder, "c");
}

TEST_F(LeaseTest, ADeletedLeaseIsWrittenAgain) {
  Candidate a(server_, "a", clock_);
  a.Step();
  ASSERT_TRUE(server_.Delete(kLeaseKey, {}).ok());
  clock_.Advance(2s);
  a.Step();
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(Stored().holder, "a");
  EXPECT_EQ(a.lost, 0);
  EXPECT_EQ(a.slow_renewals, 1);
}

TEST_F(LeaseTest, StoppingGivesTheLeaseUp) {
  Candidate a(server_, "a", clock_);
  Candidate b(server_, "b", clock_);
  a.Step();
  b.Step();
  a.election->Stop();
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(a.lost, 0);
  EXPECT_EQ(Stored().holder, "");
  EXPECT_EQ(Stored().duration, Duration(1s));
  clock_.Advance(2s);
  b.Step();
  EXPECT_TRUE(b.leads());
  EXPECT_EQ(Stored().transitions, 1);
}

TEST_F(LeaseTest, GivingUpReadsAgainAfterAConflictAndLeavesWhatIsNotItsOwn) {
  Candidate a(server_, "a", clock_);
  a.Step();
  client::Fault meanwhile = FaultOf(Verb::kUpdate, OkStatus());
  meanwhile.before_call = [&] {
    Json labelled = *server_.GetJson(kLeaseKey);
    labelled["metadata"]["labels"] = {{"seen", "yes"}};
    ASSERT_TRUE(server_.Update(Kind::kLease, labelled).ok());
  };
  a.client.Inject(meanwhile);
  a.election->Stop();
  EXPECT_EQ(Stored().holder, "");
  EXPECT_EQ((*server_.GetJson(kLeaseKey))["metadata"]["labels"]["seen"], "yes");

  Candidate b(server_, "b", clock_);
  b.Step();
  ASSERT_TRUE(b.leads());
  meanwhile.before_call = [&] { Overwrite("c", clock_.wall); };
  b.client.Inject(meanwhile);
  b.election->Stop();
  EXPECT_EQ(Stored().holder, "c");
}

TEST_F(LeaseTest, WhoLostLeavesTheLeaseAlone) {
  Candidate a(server_, "a", clock_);
  a.Step();
  clock_.Advance(10s);
  a.election->CheckDeadline();
  ASSERT_EQ(a.lost, 1);
  a.election->Stop();
  EXPECT_EQ(Stored().holder, "a");
}

TEST_F(LeaseTest, MembersThatWeDoNotKnowStay) {
  Candidate a(server_, "a", clock_);
  a.Step();
  Json lease = *server_.GetJson(kLeaseKey);
  lease["metadata"]["annotations"] = {{"note", "kept"}};
  lease["spec"]["preferredHolder"] = "b";
  ASSERT_TRUE(server_.Update(Kind::kLease, lease).ok());
  clock_.Advance(2s);
  a.Step();
  EXPECT_TRUE(a.leads());
  lease = *server_.GetJson(kLeaseKey);
  EXPECT_EQ(lease["metadata"]["annotations"]["note"], "kept");
  EXPECT_EQ(lease["spec"]["preferredHolder"], "b");
  EXPECT_EQ(Stored().renew_time, clock_.wall);
}

TEST_F(LeaseTest, ABrokenLeaseIsAnErrorAndNobodysLease) {
  const Json broken = {
      {"apiVersion", "coordination.k8s.io/v1"},
      {"kind", "Lease"},
      {"metadata", {{"namespace", kLeaseKey.name_space}, {"name", kLeaseKey.name}}},
      {"spec", {{"holderIdentity", 7}}}};
  ASSERT_TRUE(server_.Create(Kind::kLease, broken).ok());
  Candidate a(server_, "a", clock_);
  EXPECT_EQ(a.Step(), Duration(2s));
  EXPECT_FALSE(a.leads());
}

TEST_F(LeaseTest, AStuckLeaderIsUnhealthy) {
  Candidate a(server_, "a", clock_);
  clock_.Advance(100s);
  EXPECT_TRUE(a.election->Check().ok());
  a.Step();
  clock_.Advance(35s);
  EXPECT_TRUE(a.election->Check().ok());
  clock_.Advance(1ms);
  EXPECT_FALSE(a.election->Check().ok());
  a.election->Stop();
  EXPECT_TRUE(a.election->Check().ok());
}

TEST_F(LeaseTest, TimesThatCannotWorkAreRefused) {
  const auto create = [&](auto change) {
    LeaseOptions options;
    options.name_space = "ns";
    options.name = "name";
    options.identity = "a";
    change(options);
    return LeaderElection::Create(server_, options, {}).status();
  };
  EXPECT_TRUE(create([](LeaseOptions&) {}).ok());
  const Status same = create([](LeaseOptions& options) { options.renew_deadline = 15s; });
  EXPECT_EQ(same.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(Message(same).find("lease duration (15s)"), std::string::npos) << same;
  EXPECT_FALSE(create([](LeaseOptions& options) { options.retry_period = 9s; }).ok());
  EXPECT_FALSE(create([](LeaseOptions& options) { options.identity = ""; }).ok());
  EXPECT_FALSE(create([](LeaseOptions& options) { options.retry_period = Duration(0); }).ok());
}

TEST(Identity, IsUnlikeAnyOther) {
  const std::string identity = NewIdentity();
  EXPECT_NE(identity, NewIdentity());
  EXPECT_NE(identity.find('_'), std::string::npos);
  EXPECT_EQ(identity.size() - identity.rfind('_') - 1, 36u);
}

// The tests below run elections with threads and the real clock.

LeaseOptions FastOptions(const std::string& identity) {
  LeaseOptions options;
  options.name_space = kLeaseKey.name_space;
  options.name = kLeaseKey.name;
  options.identity = identity;
  options.lease_duration = 2s;
  options.renew_deadline = 400ms;
  options.retry_period = 50ms;
  return options;
}

template <typename Condition>
bool Eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

TEST(LeaseThreads, AHangingCallDoesNotHideTheLoss) {
  store::Store server;
  FaultyClient faulty(server);
  std::atomic<bool> hang{false};
  std::atomic<bool> let_go{false};
  std::atomic<int> lost{0};
  faulty.Inject({[&](const client::Call&) { return hang.load(); }, 1, 1 << 30, OkStatus(), false,
                 [&] { Eventually([&] { return let_go.load(); }); }});
  LeaseCallbacks callbacks;
  callbacks.on_lost = [&](const Status&) { ++lost; };
  const auto election = *LeaderElection::Create(faulty, FastOptions("a"), callbacks);
  election->Start();
  ASSERT_TRUE(Eventually([&] { return election->leading(); }));
  hang = true;
  EXPECT_TRUE(Eventually([&] { return lost == 1; }));
  EXPECT_FALSE(election->leading());
  let_go = true;
  election->Stop();
  EXPECT_EQ(lost, 1);
}

TEST(LeaseThreads, TheNextLeadsSoonAfterAStop) {
  store::Store server;
  const auto a = *LeaderElection::Create(server, FastOptions("a"), {});
  const auto b = *LeaderElection::Create(server, FastOptions("b"), {});
  a->Start();
  ASSERT_TRUE(Eventually([&] { return a->leading(); }));
  b->Start();
  a->Stop();
  EXPECT_TRUE(Eventually([&] { return b->leading(); }));
  EXPECT_FALSE(a->leading());
}

}  // namespace
}  // namespace tfjob::kube
