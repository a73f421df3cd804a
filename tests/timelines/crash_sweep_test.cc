// Kills the operator at each call that it makes for a job, before or after the server has executed
// the call, and starts the operator again. In the end, pods, services, conditions, counts and
// restarts must be the same as without the crash. The crash may lose events, but it must not add or
// repeat any.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "runtime/base/log.h"
#include "tests/timelines/player.h"
#include "tests/timelines/timeline.h"

namespace tfjob::timelines {
namespace {

constexpr char kLifeOfReplicas[] = R"(
apply
  spec:
    runPolicy: {cleanPodPolicy: Running, backoffLimit: 5}
    tfReplicaSpecs:
      PS: {replicas: 1, restartPolicy: OnFailure}
      Worker: {replicas: 2, restartPolicy: ExitCode}
advance 3s
pods running
advance 3s
pod worker-1 failed exit=137
advance 3s
pods running
advance 3s
pod ps-0 evicted
advance 3s
pods running
patch
  spec: {runPolicy: {suspend: true}}
advance 3s
pod ps-0 gone
pod worker-0 gone
pod worker-1 gone
advance 3s
patch
  spec: {runPolicy: {suspend: false}}
advance 3s
pods running
pod worker-1 succeeded
advance 3s
pod worker-0 succeeded
advance 3s
pod ps-0 gone
advance 1h
)";

constexpr char kLifeOfAttempts[] = R"(
apply
  spec:
    runPolicy: {restartScope: Job, cleanPodPolicy: All}
    tfReplicaSpecs:
      Chief: {replicas: 1, restartPolicy: ExitCode}
      Worker: {replicas: 2, restartPolicy: ExitCode}
advance 3s
pods running
pod worker-1 failed exit=137
advance 3s
pod chief-0 gone
pod worker-0 gone
advance 5s
pods running
advance 3s
pod chief-0 failed exit=1
advance 3s
pod worker-0 gone
pod worker-1 gone
advance 1h
)";

struct Life {
  std::string call;  // the call at which the operator was killed
  std::string summary;
  std::map<std::string, int> events;
  int calls = 0;
};

// Splits "SuccessfulCreatePod: Created pods: a, b" into one entry for a and one for b, because it
// depends on the time of the crash which objects share an event.
std::map<std::string, int> ByObject(const std::map<std::string, int>& events) {
  std::map<std::string, int> told;
  for (const auto& [event, count] : events) {
    if (!event.starts_with("Successful")) {
      told[event] += count;
      continue;
    }
    const size_t names = event.rfind(": ") + 2;
    const std::string reason = event.substr(0, event.find(':'));
    const std::vector<std::string> objects = absl::StrSplit(event.substr(names), ", ");
    for (const std::string& name : objects) {
      told[StrCat(reason, ": ", name)] += count;
    }
  }
  return told;
}

StatusOr<Life> Live(const char* script, int dies_at, bool carried_out) {
  ASSIGN_OR_RETURN(const std::vector<Step> steps, ParseTimeline(script));
  Player player;
  player.KillOperatorAt(dies_at, carried_out);
  const Status played = player.Play(steps);
  const std::string call = player.CallName(dies_at);
  if (!played.ok()) {
    return Annotate(played, StrCat(call, "\n", player.Summary().value_or("no job"), "\n"));
  }
  Life life;
  life.call = call;
  ASSIGN_OR_RETURN(life.summary, player.Summary());
  ASSIGN_OR_RETURN(const auto events, player.Events());
  life.events = ByObject(events);
  life.calls = player.CountCalls();
  return life;
}

class CrashSweepTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CrashSweepTest, EndsAsIfTheOperatorHadNotDied) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  const StatusOr<Life> undisturbed = Live(GetParam(), 0, false);
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status();
  ASSERT_GT(undisturbed->calls, 20);
  for (int call = 1; call <= undisturbed->calls; ++call) {
    for (const bool carried_out : {false, true}) {
      const std::string where = StrCat("died ", carried_out ? "after" : "before", " call ", call);
      const StatusOr<Life> life = Live(GetParam(), call, carried_out);
      ASSERT_TRUE(life.ok()) << where << ": " << life.status();
      EXPECT_EQ(life->summary, undisturbed->summary) << where << ": " << life->call;
      for (const auto& [event, count] : life->events) {
        const auto expected = undisturbed->events.find(event);
        ASSERT_NE(expected, undisturbed->events.end()) << where << ": " << event;
        EXPECT_LE(count, expected->second) << where << ": " << event;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lives, CrashSweepTest, ::testing::Values(kLifeOfReplicas, kLifeOfAttempts),
                         [](const auto& life) {
                           return life.param == kLifeOfReplicas ? "Replicas" : "Attempts";
                         });

}  // namespace
}  // namespace tfjob::timelines
