#include "operator/kube/client/watch_state.h"

#include <gtest/gtest.h>

namespace tfjob::kube {
namespace {

using Action = WatchState::Action;
using End = WatchEnd::Kind;
using Kind = WatchStep::Kind;

// Drives a WatchState. The test advances the clock.
class Script {
 public:
  explicit Script(bool streaming = true, uint64_t seed = 1) : state_(Policy(streaming), seed) {}

  static WatchPolicy Policy(bool streaming) {
    WatchPolicy policy;
    policy.streaming_list = streaming;
    return policy;
  }

  WatchStep Next() { return state_.Next(now_); }
  // Waits for as long as the state requests, and returns the next step. Stores the time waited in
  // `waited`.
  WatchStep AfterWait(Duration* waited = nullptr) {
    const Duration start = now_;
    WatchStep step = Next();
    while (step.kind == Kind::kWait) {
      now_ += step.time;
      step = Next();
    }
    if (waited != nullptr) *waited = now_ - start;
    return step;
  }
  void Pass(Duration time) { now_ += time; }
  void Opened() { state_.OnOpened(now_); }
  void Ended(End kind, std::optional<Duration> retry_after = std::nullopt) {
    state_.OnEnd({kind, retry_after, OkStatus()}, now_);
  }
  Action Page(const std::string& version, const std::string& next) {
    return state_.OnPage(version, next);
  }
  Action Event(EventType type, const std::string& version, bool initial_end = false) {
    WatchEvent event;
    event.type = type;
    event.resource_version = version;
    event.initial_end = initial_end;
    return state_.OnEvent(event);
  }
  void Probed() { state_.OnProbed(); }
  // Expects a probe as the next step, completes it, and returns the watch that follows.
  WatchStep ProbedWatch() {
    const WatchStep probe = AfterWait();
    EXPECT_EQ(probe.kind, Kind::kProbe);
    Probed();
    const WatchStep watch = Next();
    EXPECT_EQ(watch.resource_version, probe.resource_version);
    return watch;
  }
  // Completes all steps up to an open watch at version 10.
  void Watch() {
    Next();
    Opened();
    Event(EventType::kBookmark, "10", true);
    Ended(End::kClean);
    EXPECT_EQ(ProbedWatch().kind, Kind::kWatch);
    Opened();
  }
  WatchState& state() { return state_; }

 private:
  WatchState state_;
  Duration now_{1h};
};

TEST(WatchState, StreamsTheListAndGoesOnWithTheSameStream) {
  Script script;
  const WatchStep list = script.Next();
  EXPECT_EQ(list.kind, Kind::kStreamList);
  EXPECT_EQ(list.resource_version, "");
  script.Opened();
  EXPECT_EQ(script.Event(EventType::kAdded, "7"), Action::kDiscard);
  EXPECT_EQ(script.Event(EventType::kAdded, "3"), Action::kCollect);
  EXPECT_EQ(script.Event(EventType::kModified, "9"), Action::kCollect);
  EXPECT_EQ(script.Event(EventType::kBookmark, "9"), Action::kNothing);
  EXPECT_EQ(script.Event(EventType::kBookmark, "10", true), Action::kReplace);
  EXPECT_EQ(script.Event(EventType::kAdded, "11"), Action::kDeliver);
  EXPECT_EQ(script.Event(EventType::kDeleted, "12"), Action::kDeliver);
  EXPECT_EQ(script.Event(EventType::kBookmark, "20"), Action::kNothing);
  script.Pass(400s);
  script.Ended(End::kClean);
  const WatchStep watch = script.ProbedWatch();
  EXPECT_EQ(watch.kind, Kind::kWatch);
  EXPECT_EQ(watch.resource_version, "20");
}

TEST(WatchState, ListsInPagesWhereTheServerHasNoStreamingList) {
  Script script;
  EXPECT_EQ(script.Next().kind, Kind::kStreamList);
  script.Ended(End::kUnsupported);
  const WatchStep first = script.Next();
  EXPECT_EQ(first.kind, Kind::kListPage);
  EXPECT_EQ(first.continue_token, "");
  EXPECT_EQ(first.page_size, 500);
  EXPECT_EQ(script.Page("5", "next"), Action::kDiscard);
  EXPECT_EQ(script.Next().continue_token, "next");
  EXPECT_EQ(script.Page("5", ""), Action::kReplace);
  const WatchStep watch = script.Next();
  EXPECT_EQ(watch.kind, Kind::kWatch);
  EXPECT_EQ(watch.resource_version, "5");
}

TEST(WatchState, FallsBackToPagesWhenAServerIgnoresTheStreamingList) {
  Script script;
  script.Next();
  script.Opened();
  script.Event(EventType::kAdded, "7");
  script.Pass(60s);
  script.Ended(End::kSilent);
  EXPECT_EQ(script.AfterWait().kind, Kind::kListPage);
}

TEST(WatchState, AStreamingListThatBrokeOnceIsAskedForAgain) {
  Script script;
  script.Next();
  script.Opened();
  script.Event(EventType::kAdded, "7");
  script.Ended(End::kBroken);
  for (int i = 0; i < 5; ++i) {  // the server is down
    EXPECT_EQ(script.AfterWait().kind, Kind::kStreamList);
    script.Ended(End::kBroken);
  }
  EXPECT_EQ(script.AfterWait().kind, Kind::kStreamList);
  script.Opened();
  script.Ended(End::kBroken);
  EXPECT_EQ(script.AfterWait().kind, Kind::kStreamList);
  script.Opened();
  script.Event(EventType::kBookmark, "10", true);
  script.Ended(End::kExpired);
  EXPECT_EQ(script.AfterWait().kind, Kind::kStreamList);
  script.Opened();
  script.Ended(End::kBroken);
  EXPECT_EQ(script.AfterWait().kind, Kind::kStreamList);
}

TEST(WatchState, FallsBackToPagesWhenStreamingListsBreakAgainAndAgain) {
  for (const End broken : {End::kBroken, End::kClean}) {  // for example, an impatient proxy
    Script script;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(script.AfterWait().kind, Kind::kStreamList);
      script.Opened();
      script.Event(EventType::kAdded, "7");
      script.Pass(30s);
      script.Ended(broken);
    }
    EXPECT_EQ(script.AfterWait().kind, Kind::kListPage);
  }
}

TEST(WatchState, HalvesAPageThatIsTooLong) {
  Script script(false);
  EXPECT_EQ(script.Next().page_size, 500);
  script.Ended(End::kTooLong);
  EXPECT_EQ(script.Next().page_size, 250);  // at once
  script.Page("5", "next");
  script.Next();
  script.Ended(End::kTooLong);
  const WatchStep half = script.Next();
  EXPECT_EQ(half.page_size, 125);
  EXPECT_EQ(half.continue_token, "next");  // the pages read so far stay valid
  EXPECT_EQ(script.Page("5", ""), Action::kReplace);
}

TEST(WatchState, WaitsWhenASingleObjectIsTooLong) {
  Script script(false);
  for (WatchStep step = script.Next(); step.page_size > 1; step = script.Next()) {
    ASSERT_EQ(step.kind, Kind::kListPage);
    script.Ended(End::kTooLong);
  }
  script.Ended(End::kTooLong);
  EXPECT_EQ(script.Next().kind, Kind::kWait);
  EXPECT_EQ(script.AfterWait().page_size, 1);
}

TEST(WatchState, ReadsPagesAgainWhenTheWholeListIsTooLong) {
  Script script(false);
  script.Next();
  script.Page("5", "next");
  script.Next();
  script.Ended(End::kExpired);
  EXPECT_EQ(script.Next().page_size, 0);
  script.Ended(End::kTooLong);
  EXPECT_EQ(script.AfterWait().page_size, 500);
}

TEST(WatchState, ReadsTheWholeListWhenItsPagesExpire) {
  Script script(false);
  script.Next();
  script.Page("5", "next");
  script.Next();
  script.Ended(End::kExpired);
  const WatchStep whole = script.Next();
  EXPECT_EQ(whole.kind, Kind::kListPage);
  EXPECT_EQ(whole.continue_token, "");
  EXPECT_EQ(whole.page_size, 0);
  EXPECT_EQ(script.Page("8", ""), Action::kReplace);
}

TEST(WatchState, ReadsPagesAgainWhenTheWholeListBreaksOff) {
  Script script(false);
  script.Next();
  script.Page("5", "next");
  script.Next();
  script.Ended(End::kExpired);
  EXPECT_EQ(script.Next().page_size, 0);
  script.Ended(End::kBroken);
  const WatchStep page = script.AfterWait();
  EXPECT_EQ(page.kind, Kind::kListPage);
  EXPECT_GT(page.page_size, 0);
}

TEST(WatchState, TriesThePageAgainThatDidNotCome) {
  for (const End end : {End::kBroken, End::kSilent, End::kThrottled, End::kRefused}) {
    Script script(false);
    script.Next();
    EXPECT_FALSE(script.state().has_pages());
    script.Page("5", "next");
    script.Next();
    script.Ended(end);
    EXPECT_TRUE(script.state().has_pages());
    EXPECT_EQ(script.AfterWait().continue_token, "next");
    EXPECT_EQ(script.Page("5", ""), Action::kReplace);
    EXPECT_FALSE(script.state().has_pages());
  }
}

// A probe must follow every stream, even one that ended cleanly: an API server that is stopped
// because its etcd is being restored may also end its streams cleanly.
TEST(WatchState, ProbesAfterEveryStream) {
  for (const End end : {End::kClean, End::kSilent, End::kThrottled, End::kRefused}) {
    Script script;
    script.Watch();
    script.Event(EventType::kModified, "15");
    script.Ended(end);
    const WatchStep probe = script.AfterWait();
    EXPECT_EQ(probe.kind, Kind::kProbe);
    EXPECT_EQ(probe.resource_version, "15");
    script.Ended(End::kTooNew);
    EXPECT_EQ(script.AfterWait().kind, Kind::kStreamList);
  }
}

TEST(WatchState, ProbesAfterABrokenStream) {
  Script script;
  script.Watch();
  script.Event(EventType::kModified, "15");
  script.Ended(End::kBroken);
  Duration waited{0};
  const WatchStep probe = script.AfterWait(&waited);
  EXPECT_EQ(probe.kind, Kind::kProbe);
  EXPECT_EQ(probe.resource_version, "15");
  EXPECT_GE(waited, 800ms);
  EXPECT_LT(waited, 1600ms);
  script.Probed();
  const WatchStep watch = script.Next();
  EXPECT_EQ(watch.kind, Kind::kWatch);
  EXPECT_EQ(watch.resource_version, "15");
}

TEST(WatchState, ListsAnewWhenTheServerForgotOurVersion) {
  for (const End forgot : {End::kTooNew, End::kExpired}) {
    Script script;
    script.Watch();
    script.Ended(End::kBroken);
    EXPECT_EQ(script.AfterWait().kind, Kind::kProbe);
    script.Ended(forgot);
    EXPECT_EQ(script.AfterWait().kind, Kind::kStreamList);
  }
}

TEST(WatchState, AnExpiredVersionIsListedAnewAtOnce) {
  Script script;
  script.Watch();
  script.Pass(10s);
  script.Ended(End::kExpired);
  EXPECT_EQ(script.Next().kind, Kind::kStreamList);
}

TEST(WatchState, ExpiringAgainAndAgainWaitsLongerAndLonger) {
  Script script;
  Duration last{0};
  for (int i = 0; i < 4; ++i) {
    script.Watch();
    script.Ended(End::kExpired);
    Duration waited{0};
    EXPECT_EQ(script.AfterWait(&waited).kind, Kind::kStreamList);
    EXPECT_GT(waited, last / 2);
    last = waited;
  }
  EXPECT_GT(last, 5s);
}

TEST(WatchState, AThrottledWatchKeepsItsVersionAndTheServersTime) {
  Script script;
  script.Watch();
  script.Event(EventType::kModified, "15");
  script.Ended(End::kClean);
  script.ProbedWatch();
  script.Ended(End::kThrottled, 20s);
  Duration waited{0};
  EXPECT_EQ(script.AfterWait(&waited).resource_version, "15");
  EXPECT_EQ(waited, 20s);
  EXPECT_EQ(script.ProbedWatch().kind, Kind::kWatch);
}

TEST(WatchState, ARefusedWatchIsTriedAgainLater) {
  Script script;
  script.Watch();
  script.Ended(End::kClean);
  script.ProbedWatch();
  script.Ended(End::kRefused);
  Duration waited{0};
  script.AfterWait(&waited);
  EXPECT_GE(waited, 800ms);
  EXPECT_EQ(script.ProbedWatch().kind, Kind::kWatch);
}

TEST(WatchState, RubbishIsListedAnew) {
  Script script;
  script.Watch();
  script.Event(EventType::kModified, "15");
  script.Ended(End::kGarbage);
  Duration waited{0};
  EXPECT_EQ(script.AfterWait(&waited).kind, Kind::kStreamList);
  EXPECT_GE(waited, 800ms);
}

TEST(WatchState, AVeryShortWatchIsAFailure) {
  Script script;
  script.Watch();
  script.Pass(500ms);
  script.Ended(End::kClean);
  EXPECT_EQ(script.Next().kind, Kind::kWait);

  Script with_event;
  with_event.Watch();
  with_event.Event(EventType::kAdded, "11");
  with_event.Ended(End::kClean);
  EXPECT_EQ(with_event.Next().kind, Kind::kProbe);
}

TEST(WatchState, AStreamingListThatEndsTooEarlyStartsOver) {
  Script script;
  script.Next();
  script.Opened();
  script.Event(EventType::kAdded, "7");
  script.Pass(5s);
  script.Ended(End::kClean);
  Duration waited{0};
  EXPECT_EQ(script.AfterWait(&waited).kind, Kind::kStreamList);
  EXPECT_GE(waited, 800ms);
  script.Opened();
  EXPECT_EQ(script.Event(EventType::kAdded, "8"), Action::kDiscard);
}

TEST(WatchState, BacksOffUpToItsCeilingAndForgets) {
  Script script;
  script.Watch();
  Duration waited{0};
  Duration longest{0};
  for (int i = 0; i < 12; ++i) {
    script.Ended(i % 2 == 0 ? End::kBroken : End::kSilent);
    script.AfterWait(&waited);
    EXPECT_LE(waited, 60s);
    longest = std::max(longest, waited);
  }
  EXPECT_GE(longest, 30s);
  EXPECT_EQ(script.state().failures(), 12);
  script.Pass(200s);
  script.Ended(End::kBroken);
  script.AfterWait(&waited);
  EXPECT_LT(waited, 1600ms);
}

TEST(WatchState, SpreadsTheTimesOfItsWatches) {
  std::set<Duration> times;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Script script(true, seed);
    const Duration time = script.Next().time;
    EXPECT_GE(time, 300s);
    EXPECT_LT(time, 600s);
    times.insert(time);
  }
  EXPECT_GT(times.size(), 15u);
}

TEST(WatchState, PrintsTheQueriesOfItsSteps) {
  const client::LabelSelector selector = {{"a/b", "c"}, {"d", "e"}};
  WatchStep step;
  step.kind = Kind::kStreamList;
  step.time = 400500ms;
  EXPECT_EQ(QueryOf(step, selector),
            "?labelSelector=a%2Fb%3Dc%2Cd%3De&sendInitialEvents=true&resourceVersionMatch="
            "NotOlderThan&watch=1&allowWatchBookmarks=true&resourceVersion=&timeoutSeconds=400");
  step.kind = Kind::kWatch;
  step.resource_version = "7";
  EXPECT_EQ(QueryOf(step, {}),
            "?watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=400");
  step.kind = Kind::kProbe;
  EXPECT_EQ(QueryOf(step, selector),
            "?limit=1&resourceVersion=7&resourceVersionMatch=NotOlderThan");
  step.kind = Kind::kListPage;
  step.page_size = 500;
  EXPECT_EQ(QueryOf(step, {}), "?limit=500");
  step.page_size = 0;
  EXPECT_EQ(QueryOf(step, {}), "");
}

ApiError Refusal(int code) {
  ApiError error;
  error.code = code;
  error.message = "m";
  return error;
}

TEST(WatchState, KnowsWhatARefusalMeans) {
  struct Case {
    int code;
    bool in_stream;
    End expected;
  };
  for (const Case& c : {Case{410, false, End::kExpired}, Case{410, true, End::kExpired},
                        Case{429, false, End::kThrottled}, Case{429, true, End::kThrottled},
                        Case{422, false, End::kUnsupported}, Case{400, false, End::kUnsupported},
                        Case{500, true, End::kBroken}, Case{400, true, End::kGarbage},
                        Case{403, false, End::kRefused}, Case{404, false, End::kRefused},
                        Case{503, false, End::kRefused}}) {
    EXPECT_EQ(EndOf(Refusal(c.code), c.in_stream).kind, c.expected) << c.code;
  }
  ApiError too_new = Refusal(504);
  too_new.causes = {"ResourceVersionTooLarge"};
  EXPECT_EQ(EndOf(too_new, false).kind, End::kTooNew);
}

}  // namespace
}  // namespace tfjob::kube
