#include "operator/api/conditions.h"

#include <gtest/gtest.h>

namespace tfjob::api {
namespace {

using enum ConditionType;

const Time kNow = *ParseTime("2026-11-21T09:30:00Z");

// Prints the types in order, each with + for True or - for False: "Created+ Running-".
std::string Print(const TFJobStatus& status) {
  std::string text;
  for (const Condition& condition : status.conditions) {
    if (!text.empty()) text += ' ';
    text += StrCat(Name(condition.type), condition.status ? "+" : "-");
  }
  return text;
}

struct Write {
  ConditionType type;
  bool value = true;
  const char* reason = "";
};

TFJobStatus After(std::initializer_list<Write> writes) {
  TFJobStatus status;
  Time now = kNow;
  for (const Write& write : writes) {
    const std::string reason = *write.reason ? write.reason : std::string(Name(write.type));
    SetCondition(status, write.type, write.value, reason, "m", now);
    now += 1s;
  }
  return status;
}

struct Case {
  std::initializer_list<Write> writes;
  const char* printed;
};

TEST(SetCondition, KeepsTheOrderThatClientsRead) {
  const Case cases[] = {
      {{{kCreated}}, "Created+"},
      {{{kCreated}, {kRunning}}, "Created+ Running+"},
      {{{kCreated}, {kRunning}, {kSucceeded}}, "Created+ Running- Succeeded+"},
      {{{kCreated}, {kRunning}, {kFailed}}, "Created+ Running- Failed+"},
      {{{kCreated}, {kRunning}, {kRestarting}}, "Created+ Restarting+"},
      {{{kCreated}, {kRestarting}, {kRunning}}, "Created+ Running+"},
      {{{kCreated}, {kRestarting}, {kFailed}}, "Created+ Restarting+ Failed+"},
      // If a job is suspended and resumed, changed entries move to the end, and no entry is
      // removed.
      {{{kCreated}, {kRunning}, {kRunning, false, "TFJobSuspended"}, {kSuspended}},
       "Created+ Running- Suspended+"},
      {{{kCreated}, {kSuspended}, {kSuspended, false}, {kRunning}}, "Created+ Suspended- Running+"},
      {{{kCreated}, {kSuspended}, {kSuspended, false}, {kSuspended}}, "Created+ Suspended+"},
      // Setting the same condition again changes nothing, including the order.
      {{{kCreated}, {kRunning}, {kCreated}}, "Created+ Running+"},
      // A new reason moves the entry to the end.
      {{{kCreated}, {kRunning}, {kCreated, true, "Other"}}, "Running+ Created+"},
      // Succeeded and Failed are exclusive and final.
      {{{kSucceeded}, {kFailed}}, "Succeeded+"},
      {{{kFailed}, {kSucceeded}}, "Failed+"},
      {{{kFailed}, {kRunning}, {kCreated}}, "Failed+"},
      {{{kSucceeded}, {kSuspended}}, "Succeeded+"},
      {{{kFailed, false}, {kRunning}}, "Failed- Running+"},
  };
  for (const Case& test : cases) EXPECT_EQ(Print(After(test.writes)), test.printed);
}

TEST(SetCondition, TheSameStatusAndReasonKeepsMessageAndTimes) {
  TFJobStatus status;
  EXPECT_TRUE(SetCondition(status, kRunning, true, "R", "first", kNow));
  EXPECT_FALSE(SetCondition(status, kRunning, true, "R", "second", kNow + 5s));
  EXPECT_EQ(status.conditions[0].message, "first");
  EXPECT_EQ(status.conditions[0].last_update_time, kNow);
}

TEST(SetCondition, ANewReasonKeepsTheTransitionTime) {
  TFJobStatus status;
  SetCondition(status, kRunning, true, "R", "first", kNow);
  EXPECT_TRUE(SetCondition(status, kRunning, true, "Q", "second", kNow + 5s));
  EXPECT_EQ(status.conditions[0].message, "second");
  EXPECT_EQ(status.conditions[0].last_update_time, kNow + 5s);
  EXPECT_EQ(status.conditions[0].last_transition_time, kNow);
  EXPECT_TRUE(SetCondition(status, kRunning, false, "Q", "third", kNow + 9s));
  EXPECT_EQ(status.conditions[0].last_transition_time, kNow + 9s);
}

TEST(SetCondition, AnEndTurnsRunningToFalseAndTouchesNothingElseOfIt) {
  TFJobStatus status = After({{kRunning}, {kSucceeded}});
  Condition running = status.conditions[0];
  EXPECT_FALSE(running.status);
  running.status = true;
  EXPECT_EQ(running, After({{kRunning}}).conditions[0]);
}

TEST(SetCondition, TimesAreWholeSeconds) {
  TFJobStatus status;
  SetCondition(status, kCreated, true, "R", "m", kNow + 999ms);
  EXPECT_EQ(status.conditions[0].last_update_time, kNow);
}

TEST(Conditions, AnswerWhatIsTrue) {
  const TFJobStatus running = After({{kCreated}, {kRunning}});
  EXPECT_TRUE(IsTrue(running, kRunning));
  EXPECT_FALSE(IsTrue(running, kRestarting));
  EXPECT_EQ(Find(running, kRestarting), nullptr);
  EXPECT_FALSE(IsFinished(running));
  const TFJobStatus failed = After({{kRunning}, {kFailed}});
  EXPECT_TRUE(IsFinished(failed));
  EXPECT_TRUE(IsFailed(failed));
  EXPECT_FALSE(IsSucceeded(failed));
  EXPECT_FALSE(IsTrue(failed, kRunning));
  ASSERT_NE(Find(failed, kRunning), nullptr);
}

}  // namespace
}  // namespace tfjob::api
