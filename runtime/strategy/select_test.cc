// Tests which strategy is chosen or rejected for a training file and a cluster.
#include "runtime/strategy/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace tfjob::strategy {
namespace {

using config::StrategyKind;

// Returns the TF_CONFIG of a task in a cluster.
cluster::TfConfig ConfigOf(std::string_view cluster, std::string_view task_type, int index = 0) {
  if (cluster.empty()) return {};
  StatusOr<cluster::TfConfig> config = cluster::ParseTfConfig(StrCat(
      R"({"cluster":)", cluster, R"(,"task":{"type":")", task_type, R"(","index":)", index, "}}"));
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

constexpr char kAlone[] = "";
constexpr char kChiefOnly[] = R"({"chief":["c:1"]})";
constexpr char kChiefAndWorkers[] = R"({"chief":["c:1"],"worker":["w:1","w:2"]})";
constexpr char kWithServers[] = R"({"chief":["c:1"],"worker":["w:1"],"ps":["p:1"]})";
constexpr char kSparse[] = R"({"worker":{"0":"w:1"}})";
constexpr char kSparseWithServers[] = R"({"worker":{"0":"w:1"},"ps":["p:1"]})";

constexpr char kNoServers[] =
    "strategy.name: parameter_server needs ps tasks, but the cluster has none: add ps tasks, or "
    "train with one task";
constexpr char kTwoTasks[] =
    "strategy.name: one_device needs a single task that trains, but the cluster has 2: use auto, "
    "or train with one task";
constexpr char kOpenNumber[] =
    "strategy.max_replicas: expected a number, because TF_CONFIG does not say how many tasks train "
    "with multi_worker_mirrored (enableDynamicWorker): set strategy.min_replicas and "
    "strategy.max_replicas in the training file, or remove enableDynamicWorker";
constexpr char kSeveralTasks[] =
    "strategy.name: one_device needs a single task that trains, but the cluster has several: add "
    "ps tasks, set strategy.name to multi_worker_mirrored with min_replicas and max_replicas, or "
    "train with one task";

struct Case {
  StrategyKind wanted;
  const char* cluster;
  const char* task_type;
  StrategyKind selected;  // kAuto if the strategy is refused with `code` and `message`
  StatusCode code = StatusCode::kOk;
  const char* message = "";
};

TEST(Select, ChoosesOrRefusesByTheClusterAndTheTrainingFile) {
  constexpr auto kRefused = StrategyKind::kAuto;
  constexpr auto kServers = StrategyKind::kParameterServer;
  constexpr auto kOneDevice = StrategyKind::kOneDevice;
  constexpr auto kGroup = StrategyKind::kMultiWorkerMirrored;
  constexpr auto kMirrored = StrategyKind::kMirrored;
  constexpr auto kCentral = StrategyKind::kCentralStorage;
  const Case cases[] = {
      {StrategyKind::kAuto, kAlone, "", kOneDevice},
      {StrategyKind::kAuto, kChiefOnly, "chief", kOneDevice},
      {StrategyKind::kAuto, kWithServers, "chief", kServers},
      {StrategyKind::kAuto, kWithServers, "worker", kServers},
      {StrategyKind::kAuto, kSparse, "worker", kOneDevice},
      {StrategyKind::kAuto, kSparseWithServers, "worker", kServers},
      {StrategyKind::kAuto, kChiefAndWorkers, "chief", kGroup},
      {StrategyKind::kAuto, kChiefAndWorkers, "worker", kGroup},
      {kGroup, kChiefAndWorkers, "worker", kGroup},
      {kGroup, kAlone, "", kGroup},
      {kGroup, kSparse, "worker", kRefused, StatusCode::kInvalidArgument, kOpenNumber},
      {kGroup, kWithServers, "worker", kRefused, StatusCode::kInvalidArgument,
       "strategy.name: multi_worker_mirrored uses no parameter servers, but the cluster has 1 ps "
       "tasks: remove them, or use parameter_server"},
      {kServers, kWithServers, "worker", kServers},
      {kServers, kAlone, "", kRefused, StatusCode::kInvalidArgument, kNoServers},
      {kServers, kChiefAndWorkers, "chief", kRefused, StatusCode::kInvalidArgument, kNoServers},
      {kOneDevice, kAlone, "", kOneDevice},
      {kOneDevice, kWithServers, "chief", kRefused, StatusCode::kInvalidArgument, kTwoTasks},
      {kMirrored, kAlone, "", kMirrored},
      {kMirrored, kChiefOnly, "chief", kMirrored},
      {kMirrored, kChiefAndWorkers, "worker", kRefused, StatusCode::kInvalidArgument,
       "strategy.name: mirrored trains with the devices of a single task, but the cluster has 3 "
       "tasks that train: use multi_worker_mirrored, or train with one task"},
      {kMirrored, kSparse, "worker", kRefused, StatusCode::kInvalidArgument,
       "strategy.name: mirrored trains with the devices of a single task, but with "
       "enableDynamicWorker, any number of tasks may train: train with one task, without "
       "enableDynamicWorker"},
      {kCentral, kAlone, "", kCentral},
      {kCentral, R"({"chief":["c:1"],"ps":["p:1","p:2"]})", "chief", kRefused,
       StatusCode::kInvalidArgument,
       "strategy.name: central_storage uses no parameter servers, but the cluster has 2 ps tasks: "
       "remove them, or use parameter_server"},
  };
  for (const Case& c : cases) {
    const auto selected = Select(c.wanted, ConfigOf(c.cluster, c.task_type));
    SCOPED_TRACE(StrCat(static_cast<int>(c.wanted), " ", c.cluster, " ", c.task_type));
    if (c.selected != kRefused) {
      ASSERT_TRUE(selected.ok()) << selected.status();
      EXPECT_EQ(*selected, c.selected);
    } else {
      EXPECT_EQ(selected.status().code(), c.code);
      EXPECT_EQ(Message(selected.status()), c.message);
    }
  }
}

// Every value of strategy.name except `auto` must name one entry. The last entry must suit every
// cluster.
TEST(AllStrategies, HasOneEntryPerWord) {
  for (size_t i = 1; i < std::size(config::kStrategyNames); ++i) {
    const auto all = AllStrategies();
    EXPECT_EQ(std::ranges::count(all, static_cast<StrategyKind>(i), &StrategyEntry::kind), 1)
        << config::kStrategyNames[i];
  }
  EXPECT_TRUE(AllStrategies().back().suits({}));
}

// The sparse form of TF_CONFIG does not specify the number of tasks. The strategy one_device must
// still be refused for a task that cannot be the only one.
TEST(Select, RefusesOneDeviceToAWorkerThatIsNotTheOnlyTask) {
  const cluster::TfConfig config = ConfigOf(R"({"worker":{"1":"w:1"}})", "worker", 1);
  EXPECT_EQ(Message(Select(StrategyKind::kAuto, config).status()), kSeveralTasks);
}

TEST(MakeStrategy, RefusesALimitOfStalenessToATaskThatTrainsAlone) {
  TrainingTask task;
  task.config.max_staleness = 4;
  EXPECT_EQ(MakeStrategy(std::move(task), {}).status(),
            InvalidArgument("strategy.max_staleness: a task that trains alone has no stale "
                            "gradients, and the cluster has no ps task; remove the key, or add ps "
                            "tasks"));
}

TEST(MakeStrategy, RefusesSeveralDevicesPerTaskOfAGroup) {
  TrainingTask task{.tf_config = ConfigOf(kChiefAndWorkers, "worker")};
  task.config.kind = StrategyKind::kMultiWorkerMirrored;
  task.config.devices = 2;
  EXPECT_EQ(MakeStrategy(std::move(task), {}).status(),
            Unimplemented("strategy.devices: multi_worker_mirrored trains with one device per task "
                          "in this version, got 2: remove the key, or use mirrored with one task"));
}

TEST(MakeEndpoint, MakesOneForTasksOfAGroupOnly) {
  TrainingTask task{.tf_config = ConfigOf(kChiefAndWorkers, "worker"),
                    .identity = {.task_type = "worker", .task_index = 0}};
  const auto endpoint = MakeEndpoint(task);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_NE(*endpoint, nullptr);
  task.tf_config = ConfigOf(kWithServers, "worker");
  EXPECT_EQ(*MakeEndpoint(task), nullptr);
}

}  // namespace
}  // namespace tfjob::strategy
