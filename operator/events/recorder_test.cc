#include "operator/events/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "operator/client/faults.h"
#include "operator/local/store/store.h"
#include "operator/objects/custom_resource.h"
#include "runtime/base/fake_clock.h"

namespace tfjob::events {
namespace {

using client::FaultyClient;
using client::Verb;
using objects::Kind;

constexpr char kCreated[] = "SuccessfulCreatePod";

objects::Event EventOf(const std::string& message, const std::string& reason = kCreated,
                       const std::string& uid = "u1") {
  objects::Event event;
  event.involved = {"kubeflow.org/v1", "TFJob", "ns", "mnist", uid, ""};
  event.reason = reason;
  event.message = message;
  return event;
}

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    options_.clock = &clock_;
    options_.threads = 0;
    options_.uniform = [] { return 0.5; };
  }

  Recorder& recorder() {
    if (recorder_ == nullptr) recorder_ = std::make_unique<Recorder>(client_, options_);
    return *recorder_;
  }
  void SendAll() {
    while (recorder().Step()) {
    }
  }
  // Returns a line "message ×count" for each event, sorted by the events' names.
  std::vector<std::string> Events() {
    std::vector<std::string> lines;
    const std::vector<client::Object> listed = *server_.List(Kind::kEvent, "ns", {});
    for (const client::Object& object : listed) {
      const auto& event = *std::get<std::shared_ptr<const objects::CustomResource>>(object)->object;
      lines.push_back(
          StrCat(event["message"].get_ref<const std::string&>(), " ×", event["count"].get<int>()));
    }
    return lines;
  }
  Json Stored(const std::string& name) { return *server_.GetJson({Kind::kEvent, "ns", name}); }
  size_t Calls(Verb verb) {
    size_t calls = 0;
    for (const client::Call& call : client_.Calls()) calls += call.verb == verb;
    return calls;
  }
  void Fail(int nth, int times, Status error, bool executed = false) {
    client_.Inject({[](const client::Call&) { return true; }, nth, times, std::move(error),
                    executed, nullptr});
  }

  FakeClock clock_{*ParseTime("2026-11-21T09:30:00Z")};
  store::Store server_;
  FaultyClient client_{server_};
  RecorderOptions options_;
  std::unique_ptr<Recorder> recorder_;
};

TEST_F(RecorderTest, AnEventIsSentAsItIs) {
  recorder().Record("mnist.1", EventOf("Created pod: mnist-worker-0"));
  EXPECT_TRUE(client_.Calls().empty());  // nothing is sent in the caller's thread
  SendAll();
  const Json event = Stored("mnist.1");
  EXPECT_EQ(event["message"], "Created pod: mnist-worker-0");
  EXPECT_EQ(event["reason"], kCreated);
  EXPECT_EQ(event["type"], "Normal");
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(event["involvedObject"]["uid"], "u1");
  EXPECT_EQ(event["firstTimestamp"], "2026-11-21T09:30:00Z");
  EXPECT_EQ(event["lastTimestamp"], "2026-11-21T09:30:00Z");
}

TEST_F(RecorderTest, TheSameAgainIsCounted) {
  recorder().Record("mnist.1", EventOf("Restarting"));
  SendAll();
  clock_.Advance(60s);
  recorder().Record("mnist.2", EventOf("Restarting"));
  SendAll();
  EXPECT_EQ(Events(), std::vector<std::string>{"Restarting ×2"});
  EXPECT_EQ(Stored("mnist.1")["firstTimestamp"], "2026-11-21T09:30:00Z");
  EXPECT_EQ(Stored("mnist.1")["lastTimestamp"], "2026-11-21T09:31:00Z");
  EXPECT_EQ(Calls(Verb::kPatch), 1u);
}

TEST_F(RecorderTest, TheSameCauseTwiceIsOneEvent) {
  recorder().Record("mnist.1", EventOf("Restarting"));
  recorder().Record("mnist.1", EventOf("Restarting"));
  SendAll();
  recorder().Record("mnist.1", EventOf("Restarting"));
  SendAll();
  EXPECT_EQ(Events(), std::vector<std::string>{"Restarting ×1"});
  EXPECT_EQ(client_.Calls().size(), 1u);
  EXPECT_EQ(recorder().counters().merged, 2);
}

TEST_F(RecorderTest, AnEventOfTheLastLifeIsNotSentTwice) {
  recorder().Record("mnist.1", EventOf("Restarting"));
  SendAll();
  Recorder next(client_, options_);
  next.Record("mnist.1", EventOf("Restarting"));
  EXPECT_TRUE(next.Step());
  EXPECT_EQ(Events(), std::vector<std::string>{"Restarting ×1"});
  EXPECT_EQ(next.counters().sent, 1);
}

TEST_F(RecorderTest, OfManySimilarOnesNineStandForThemselvesAndOneCountsTheOthers) {
  for (int i = 0; i < 1000; ++i) {
    recorder().Record(StrCat("mnist.", i), EventOf(StrCat("Created pod: mnist-worker-", i)));
  }
  SendAll();
  std::vector<std::string> events = Events();
  ASSERT_EQ(events.size(), 10u);
  int single = 0;
  std::string combined;
  for (const std::string& event : events) {
    if (event.find("(combined from similar events): Created pod: mnist-worker-") == 0) {
      combined = event;
    } else {
      single += event.find("Created pod: mnist-worker-") == 0;
    }
  }
  EXPECT_EQ(single, 9);
  // The rate limit allows 25 calls: 9 for individual events, and 16 for the combined event.
  EXPECT_EQ(combined, "(combined from similar events): Created pod: mnist-worker-24 ×16");
  EXPECT_EQ(client_.Calls().size(), 10u);  // the 16 similar events were merged while they waited

  // The next event that may be sent reports the whole count.
  clock_.Advance(300s);
  recorder().Record("mnist.x", EventOf("Created pod: mnist-worker-1000"));
  SendAll();
  events = Events();
  ASSERT_EQ(events.size(), 10u);
  EXPECT_NE(std::find(events.begin(), events.end(),
                      "(combined from similar events): Created pod: mnist-worker-1000 ×992"),
            events.end());
}

TEST_F(RecorderTest, AfterTenQuietMinutesEventsStandForThemselvesAgain) {
  for (int i = 0; i < 12; ++i) recorder().Record("", EventOf(StrCat("Created pod: ", i)));
  clock_.Advance(601s);
  recorder().Record("", EventOf("Created pod: late"));
  SendAll();
  const std::vector<std::string> events = Events();
  EXPECT_NE(std::find(events.begin(), events.end(), "Created pod: late ×1"), events.end());
}

TEST_F(RecorderTest, SimilarEventsOfDifferentObjectsReasonsAndTypesAreNotCombined) {
  for (int i = 0; i < 20; ++i) {
    recorder().Record("", EventOf(StrCat("m", i), StrCat("Reason", i)));
    recorder().Record("", EventOf(StrCat("m", i), "Same", StrCat("uid", i)));
  }
  SendAll();
  EXPECT_EQ(Events().size(), 40u);
}

TEST_F(RecorderTest, AFloodIsCutOffAndSparesOtherReasonsAndObjects) {
  for (int i = 0; i < 100; ++i) {
    recorder().Record(StrCat("n", i), EventOf("Restarting", "TFJobRestarting"));
    SendAll();
  }
  EXPECT_EQ(client_.Calls().size(), 25u);
  EXPECT_EQ(recorder().counters().filtered, 75);
  recorder().Record("end", EventOf("done", "TFJobSucceeded"));
  recorder().Record("other", EventOf("Restarting", "TFJobRestarting", "u2"));
  SendAll();
  EXPECT_EQ(client_.Calls().size(), 27u);
  clock_.Advance(299s);
  recorder().Record("n100", EventOf("Restarting", "TFJobRestarting"));
  SendAll();
  EXPECT_EQ(client_.Calls().size(), 27u);
  clock_.Advance(1s);
  recorder().Record("n101", EventOf("Restarting", "TFJobRestarting"));
  SendAll();
  EXPECT_EQ(client_.Calls().size(), 28u);
  EXPECT_EQ(Stored("n0")["count"], 102);
}

TEST_F(RecorderTest, AnEventThatTheServerForgotIsCreatedAgain) {
  recorder().Record("mnist.1", EventOf("Restarting"));
  SendAll();
  ASSERT_TRUE(server_.Delete({Kind::kEvent, "ns", "mnist.1"}, {}).ok());
  recorder().Record("mnist.2", EventOf("Restarting"));
  SendAll();
  EXPECT_EQ(Events(), std::vector<std::string>{"Restarting ×2"});
}

TEST_F(RecorderTest, WhatFailsInPassingIsTriedAgain) {
  Fail(1, 2, Unavailable("connection refused"));
  recorder().Record("mnist.1", EventOf("Restarting"));
  EXPECT_TRUE(recorder().Step());
  EXPECT_FALSE(recorder().Step());
  EXPECT_EQ(recorder().counters().waiting, 1u);
  clock_.Advance(4999ms);
  EXPECT_FALSE(recorder().Step());
  clock_.Advance(1ms);  // the first delay is a fraction of the period
  EXPECT_TRUE(recorder().Step());
  clock_.Advance(9999ms);
  EXPECT_FALSE(recorder().Step());
  clock_.Advance(1ms);
  EXPECT_TRUE(recorder().Step());
  EXPECT_EQ(Events(), std::vector<std::string>{"Restarting ×1"});
  EXPECT_EQ(recorder().counters().retried, 2);
  EXPECT_EQ(recorder().counters().sent, 1);
}

TEST_F(RecorderTest, ALostAnswerMakesNoSecondEvent) {
  Fail(1, 1, DeadlineExceeded("no answer"), true);
  recorder().Record("mnist.1", EventOf("Restarting"));
  SendAll();
  clock_.Advance(10s);
  SendAll();
  EXPECT_EQ(Events(), std::vector<std::string>{"Restarting ×1"});
  EXPECT_EQ(recorder().counters().sent, 1);
}

TEST_F(RecorderTest, AfterTwelveTriesItIsGivenUp) {
  Fail(1, 1 << 30, Unavailable("connection refused"));
  recorder().Record("mnist.1", EventOf("Restarting"));
  for (int i = 0; i < 100; ++i) {
    SendAll();
    clock_.Advance(10s);
  }
  EXPECT_EQ(client_.Calls().size(), 12u);
  EXPECT_EQ(recorder().counters().expired, 1);
  EXPECT_EQ(recorder().counters().waiting, 0u);
}

TEST_F(RecorderTest, WhatTheServerRefusesIsNotTriedAgain) {
  for (const Status& status : {InvalidArgument("bad"), PermissionDenied("no"),
                               FailedPrecondition("does not lead"), NotFound("namespace")}) {
    Fail(1, 1, status);
    recorder().Record("", EventOf(StrCat("of ", Message(status))));
    SendAll();
    clock_.Advance(1h);
    EXPECT_FALSE(recorder().Step()) << status;
    client_.Clear();
  }
  EXPECT_EQ(recorder().counters().refused, 4);
}

TEST_F(RecorderTest, OneThatWaitsGoesOutWithItsNewestState) {
  Fail(1, 1, Unavailable("connection refused"));
  recorder().Record("mnist.1", EventOf("Restarting"));
  SendAll();
  for (int i = 2; i < 6; ++i) recorder().Record(StrCat("mnist.", i), EventOf("Restarting"));
  clock_.Advance(10s);
  SendAll();
  EXPECT_EQ(Events(), std::vector<std::string>{"Restarting ×5"});
  EXPECT_EQ(recorder().counters().waiting, 0u);
}

TEST_F(RecorderTest, AFullQueueDropsRoutineFirst) {
  options_.queue = 10;
  options_.reserve = 4;
  options_.routine = [](const objects::Event& event) { return event.reason == kCreated; };
  for (int i = 0; i < 20; ++i) {
    recorder().Record("", EventOf("created", kCreated, StrCat("u", i)));
  }
  EXPECT_EQ(recorder().counters().waiting, 6u);
  EXPECT_EQ(recorder().counters().dropped_routine, 14);
  EXPECT_EQ(recorder().counters().dropped, 0);
  for (int i = 0; i < 20; ++i) {
    recorder().Record("", EventOf("failed", "TFJobFailed", StrCat("u", i)));
  }
  EXPECT_EQ(recorder().counters().waiting, 10u);
  EXPECT_EQ(recorder().counters().dropped_routine, 14);
  EXPECT_EQ(recorder().counters().dropped, 16);
  SendAll();
  EXPECT_EQ(Events().size(), 10u);
}

TEST_F(RecorderTest, TheLogTellsOnceAMinuteOfEventsThatAreDropped) {
  options_.queue = 1;
  options_.reserve = 1;
  options_.routine = [](const objects::Event& event) { return event.reason == kCreated; };
  int uid = 0;
  const auto log_of = [&](const std::string& reason, int events) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < events; ++i) {
      recorder().Record("", EventOf("m", reason, StrCat("u", ++uid)));
    }
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(log_of(kCreated, 3), "");
  const std::string first = log_of("TFJobFailed", 5);  // one of them waits
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 1) << first;
  EXPECT_NE(first.find("events=1"), std::string::npos) << first;
  EXPECT_NE(first.find("reason=TFJobFailed"), std::string::npos) << first;
  clock_.Advance(59s);
  EXPECT_EQ(log_of("TFJobFailed", 2), "");
  clock_.Advance(1s);
  const std::string later = log_of("TFJobFailed", 1);
  EXPECT_NE(later.find("events=6"), std::string::npos) << later;
  EXPECT_EQ(recorder().counters().dropped, 7);
}

TEST_F(RecorderTest, OfAThousandJobsAtOnceNoEventIsLostButRoutine) {
  options_.routine = [](const objects::Event& event) { return event.reason == kCreated; };
  constexpr int kJobs = 1000;
  for (int job = 0; job < kJobs; ++job) {
    const std::string uid = StrCat("u", job);
    for (int pod = 0; pod < 9; ++pod) {
      recorder().Record("", EventOf(StrCat("Created pod: ", pod), kCreated, uid));
    }
    for (const char* reason : {"TFJobCreated", "TFJobRunning", "TFJobSucceeded"}) {
      recorder().Record("", EventOf(reason, reason, uid));
    }
  }
  // Events that are not routine are sent first.
  for (int i = 0; i < 3 * kJobs; ++i) ASSERT_TRUE(recorder().Step());
  int needed = 0;
  for (const std::string& event : Events()) needed += event.starts_with("TFJob");
  EXPECT_EQ(needed, 3 * kJobs);
  SendAll();
  EXPECT_GT(Events().size(), 3u * kJobs);  // routine events were accepted while there was room
}

TEST_F(RecorderTest, MemoryIsBounded) {
  options_.correlator.memory = 8;
  for (int i = 0; i < 100; ++i) {
    recorder().Record("", EventOf("created", kCreated, StrCat("u", i)));
  }
  recorder().Record("again", EventOf("created", kCreated, "u0"));  // u0 was evicted: a new event
  SendAll();
  EXPECT_EQ(Stored("again")["count"], 1);
}

TEST_F(RecorderTest, AfterStopNothingIsTakenIn) {
  recorder().Record("mnist.1", EventOf("Restarting"));
  recorder().Stop(Duration(0));
  recorder().Record("mnist.2", EventOf("Ended"));
  EXPECT_FALSE(recorder().Step());
  EXPECT_EQ(recorder().counters().dropped, 2);
  EXPECT_TRUE(client_.Calls().empty());
}

TEST_F(RecorderTest, AnEndSaysOnceHowManyEventsItCutOff) {
  for (int i = 0; i < 5; ++i) recorder().Record("", EventOf("x", "Reason", StrCat("u", i)));
  Fail(1, 3, Cancelled("the client was stopped"));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(recorder().Step());
  recorder().Stop(Duration(0));
  recorder().Stop(Duration(0));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_NE(log.find("events=5"), std::string::npos) << log;
  EXPECT_EQ(recorder().counters().dropped, 5);
  EXPECT_EQ(recorder().counters().refused, 0);
}

TEST_F(RecorderTest, TheLogNamesTheObjectWithItsNamespace) {
  Fail(1, 1, InvalidArgument("bad"));
  recorder().Record("", EventOf("Restarting"));
  testing::internal::CaptureStderr();
  SendAll();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("TFJob ns/mnist"), std::string::npos) << log;
}

TEST(RecorderThreads, SendWhatIsRecordedAndStopFlushes) {
  store::Store server;
  Recorder recorder(server, {});
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&recorder, w] {
      for (int i = 0; i < 100; ++i) {
        recorder.Record("", EventOf(StrCat("w", w, " ", i), "Reason", StrCat("u", w, "-", i)));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  recorder.Stop(20s);
  EXPECT_EQ(server.List(Kind::kEvent, "ns", {})->size(), 400u);
  EXPECT_EQ(recorder.counters().sent, 400);
}

TEST(RecorderThreads, StopDoesNotWaitForAServerThatIsAway) {
  store::Store server;
  FaultyClient client(server);
  client.Inject({[](const client::Call&) { return true; }, 1, 1 << 30, Unavailable("refused"),
                 false, nullptr});
  Recorder recorder(client, {});
  for (int i = 0; i < 50; ++i) recorder.Record("", EventOf("x", "Reason", StrCat("u", i)));
  const auto start = std::chrono::steady_clock::now();
  recorder.Stop(20s);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  EXPECT_EQ(recorder.counters().dropped, 50);
}

}  // namespace
}  // namespace tfjob::events
