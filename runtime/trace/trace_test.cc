#include "runtime/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/thread.h"
#include "runtime/trace/chrome.h"
#include "runtime/trace/totals.h"

namespace tfjob::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const ThreadEvents& thread) {
  std::vector<std::string> names;
  for (const Event& event : thread.events) names.emplace_back(event.name.view());
  return names;
}

TEST(TraceTest, RecordsNothingUnlessStarted) {
  {
    const Span span(Category::kStep, "before");
  }
  EXPECT_FALSE(Recording());
  EXPECT_THAT(Stop().threads, IsEmpty());
}

TEST(TraceTest, NestsTheSpansOfAThread) {
  Start();
  {
    const Span step(Category::kStep, "step 1");
    const Span op(Category::kOp, "dense/MatMul", "MatMul");
  }
  const Trace trace = Stop();
  ASSERT_EQ(trace.threads.size(), 1u);
  ASSERT_THAT(NamesOf(trace.threads[0]), ElementsAre("dense/MatMul", "step 1"));
  const Event& op = trace.threads[0].events[0];
  const Event& step = trace.threads[0].events[1];
  EXPECT_EQ(op.kind.view(), "MatMul");
  EXPECT_GE(step.start_ns, 0);
  EXPECT_LE(step.start_ns, op.start_ns);
  EXPECT_GE(step.start_ns + step.duration_ns, op.start_ns + op.duration_ns);
}

TEST(TraceTest, KeepsTheEventsOfThreadsThatHaveEnded) {
  Start();
  Thread thread("reader", [] { const Span span(Category::kData, "batch"); });
  thread.Join();
  {
    const Span span(Category::kStep, "step");
  }
  const Trace trace = Stop();
  ASSERT_EQ(trace.threads.size(), 2u);
  const bool first = trace.threads[0].thread == "reader";
  EXPECT_EQ(trace.threads[first ? 0 : 1].thread, "reader");
  EXPECT_THAT(NamesOf(trace.threads[first ? 0 : 1]), ElementsAre("batch"));
  EXPECT_THAT(NamesOf(trace.threads[first ? 1 : 0]), ElementsAre("step"));
  EXPECT_NE(trace.threads[0].id, trace.threads[1].id);
}

TEST(TraceTest, LeavesOutSpansThatARecordingDoesNotContain) {
  Start();
  {
    const Span longer(Category::kStep, "ends after the recording");
    EXPECT_THAT(Stop().threads, IsEmpty());
    Start();
  }
  {
    const Span span(Category::kStep, "of the second recording");
  }
  const Trace trace = Stop();
  ASSERT_EQ(trace.threads.size(), 1u);
  EXPECT_THAT(NamesOf(trace.threads[0]), ElementsAre("of the second recording"));
}

TEST(TraceTest, ForgetsARecordingThatWasNotStopped) {
  Start();
  {
    const Span span(Category::kStep, "of the first recording");
  }
  Start();
  {
    const Span span(Category::kStep, "of the second recording");
  }
  const Trace trace = Stop();
  ASSERT_EQ(trace.threads.size(), 1u);
  EXPECT_THAT(NamesOf(trace.threads[0]), ElementsAre("of the second recording"));
}

TEST(TraceTest, CountsTheEventsBeyondTheLimit) {
  Start();
  for (size_t i = 0; i < kMaxEvents + 3; ++i) {
    const Span span(Category::kOp, "op");
  }
  const Trace trace = Stop();
  ASSERT_EQ(trace.threads.size(), 1u);
  EXPECT_EQ(trace.threads[0].events.size(), kMaxEvents);
  EXPECT_EQ(trace.threads[0].dropped, 3);
}

TEST(TraceTest, CutsOffLongNames) {
  Label<8> label;
  label.Set("a/long/name");
  EXPECT_EQ(label.view(), "a/long/");
}

Trace Example() {
  const auto event = [](int64_t start, int64_t duration, Category category, std::string_view name,
                        std::string_view kind) {
    Event event{.start_ns = start, .duration_ns = duration, .category = category};
    event.name.Set(name);
    event.kind.Set(kind);
    return event;
  };
  ThreadEvents trainer{.thread = "trainer", .id = 1};
  trainer.events = {event(1500, 2000, Category::kOp, "dense/MatMul", "MatMul"),
                    event(4000, 1'000'000, Category::kOp, "dense/\"Relu\"", "Relu"),
                    event(1'005'000, 1000, Category::kOp, "dense/MatMul", "MatMul"),
                    event(1000, 1'006'000, Category::kStep, "step 10", "")};
  return {.threads = {trainer}};
}

TEST(ChromeTraceTest, WritesACompleteEventPerSpan) {
  const auto json = ParseJson(ChromeTrace(Example(), "worker 0"), "trace");
  ASSERT_TRUE(json.ok()) << json.status();
  const Json& events = (*json)["traceEvents"];
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0]["args"]["name"], "worker 0");
  EXPECT_EQ(events[1], (Json{{"ph", "M"},
                             {"pid", 1},
                             {"tid", 1},
                             {"name", "thread_name"},
                             {"args", {{"name", "trainer"}}}}));
  EXPECT_EQ(events[2], (Json{{"ph", "X"},
                             {"pid", 1},
                             {"tid", 1},
                             {"cat", "op"},
                             {"name", "dense/MatMul"},
                             {"ts", 1.5},
                             {"dur", 2.0},
                             {"args", {{"op", "MatMul"}}}}));
  EXPECT_EQ(events[3]["name"], "dense/\"Relu\"");
  EXPECT_EQ(events[5]["cat"], "step");
  EXPECT_FALSE(events[5].contains("args"));
}

TEST(TotalsTest, AddsTheCallsOfANode) {
  const std::vector<Total> totals = OpTotals(Example());
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].kind, "Relu");
  EXPECT_EQ(totals[1].name, "dense/MatMul");
  EXPECT_EQ(totals[1].calls, 2);
  EXPECT_EQ(totals[1].ns, 3000);
}

}  // namespace
}  // namespace tfjob::trace
