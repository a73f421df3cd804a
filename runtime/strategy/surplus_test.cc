// Tests a worker beyond strategy.max_replicas.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/base/fake_clock.h"
#include "runtime/strategy/select.h"
#include "runtime/strategy/surplus_strategy.h"

namespace tfjob::strategy {
namespace {

constexpr char kChiefAndThreeWorkers[] = R"({"chief":["c:1"],"worker":["w:1","w:2","w:3"]})";

// Returns a task of an elastic job with at most three tasks, whose TF_CONFIG lists four.
TrainingTask TaskOf(std::string_view type, int index) {
  auto tf_config =
      cluster::ParseTfConfig(StrCat(R"({"cluster":)", kChiefAndThreeWorkers, R"(,"task":{"type":")",
                                    type, R"(","index":)", index, "}}"));
  EXPECT_TRUE(tf_config.ok()) << tf_config.status();
  TrainingTask task{.tf_config = *std::move(tf_config),
                    .identity = {.task_type = std::string(type), .task_index = index}};
  task.config.kind = config::StrategyKind::kMultiWorkerMirrored;
  task.config.min_replicas = 2;
  task.config.max_replicas = 3;
  task.config.on_failure = config::OnFailure::kShrink;
  return task;
}

TEST(Surplus, WaitsAndReportsUntilItIsAskedToStop) {
  FakeClock clock{Time()};
  std::vector<state::PeerEvent> events;
  int polls = 0;
  TrainingTask task = TaskOf("worker", 2);
  task.on_event = [&](const state::PeerEvent& event) { events.push_back(event); };
  task.stop_requested = [&] {
    clock.Advance(kReportSurplus / 2);
    return ++polls == 4;
  };
  const auto strategy = MakeSurplus(std::move(task), clock);
  EXPECT_EQ(strategy->Start().status(), Cancelled("worker 2 has taken no part in the run"));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0],
            (state::PeerEvent{.kind = state::PeerEvent::Kind::kWaiting,
                              .peer = "strategy.max_replicas (3)",
                              .address = "",
                              .message = "takes no part in the run, because worker 2 is beyond "
                                         "strategy.max_replicas (3), which counts the chief: scale "
                                         "the job down"}));
}

TEST(Surplus, OnlyTasksBeyondTheLimitHaveNoEndpoint) {
  EXPECT_EQ(*MakeEndpoint(TaskOf("worker", 2)), nullptr);
  EXPECT_NE(*MakeEndpoint(TaskOf("worker", 1)), nullptr);
  EXPECT_NE(*MakeEndpoint(TaskOf("chief", 0)), nullptr) << "its TF_CONFIG lists a task too many";
}

}  // namespace
}  // namespace tfjob::strategy
