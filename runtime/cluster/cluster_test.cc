#include "runtime/cluster/cluster.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace tfjob::cluster {
namespace {

constexpr char kStatic[] =
    R"({"cluster":{"chief":["a:1"],"evaluator":["e:1"],"ps":["p:1","p:2"],"worker":["w:1","w:2"]},)"
    R"("task":{"type":"worker","index":1},"environment":"cloud"})";

std::string ErrorOf(std::string_view text) {
  return std::string(Message(ParseTfConfig(text).status()));
}

TEST(TfConfig, StaticFormReadsBackByteForByte) {
  StatusOr<TfConfig> config = ParseTfConfig(kStatic);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(Print(*config), kStatic);
  EXPECT_EQ(config->cluster.address({"ps", 1}), "p:2");
  EXPECT_EQ(RoleOf(*config), Role::kWorker);
  EXPECT_EQ(TrainingTasks(*config),
            (std::vector<Task>{{"chief", 0}, {"worker", 0}, {"worker", 1}}));
  EXPECT_EQ(TrainingRank(*config, {"worker", 1}), 2);
  EXPECT_EQ(TrainingRank(*config, {"ps", 1}), -1);
}

TEST(TfConfig, PrintsDynamicFormsInTheOrderGiven) {
  TfConfig worker{.cluster = {{{.name = "worker", .addresses = {{3, "w:1"}}, .sparse = true},
                               {.name = "ps", .null = true}}},
                  .task = {"worker", 3}};
  EXPECT_EQ(Print(worker),
            R"({"cluster":{"worker":{"3":"w:1"},"ps":null},"task":{"type":"worker","index":3}})");
  TfConfig ps{
      .cluster = {{{.name = "worker", .sparse = true}, {.name = "ps", .addresses = {{0, "p:1"}}}}},
      .task = {"ps", 0}};
  EXPECT_EQ(Print(ps), R"({"cluster":{"worker":{},"ps":["p:1"]},"task":{"type":"ps","index":0}})");
  EXPECT_TRUE(ParseTfConfig(Print(worker)).ok());
}

TEST(TfConfig, ASparseTaskKnowsItselfAndTheServers) {
  TfConfig worker = *ParseTfConfig(
      R"({"cluster":{"worker":{"2":"w:3"},"ps":["p:1","p:2"]},"task":{"type":"worker","index":2}})");
  EXPECT_TRUE(worker.cluster.sparse());
  EXPECT_EQ(RoleOf(worker), Role::kWorker);
  EXPECT_EQ(TrainingTaskCount(worker), 0);
  EXPECT_EQ(TrainingRank(worker, worker.task), 2);
  worker.chief_type = "chief";
  EXPECT_EQ(TrainingRank(worker, worker.task), 3);
  EXPECT_EQ(ChiefOf(worker), (Task{"chief", 0}));

  TfConfig first = *ParseTfConfig(
      R"({"cluster":{"worker":{"0":"w:1"},"ps":["p:1"]},"task":{"type":"worker","index":0}})");
  EXPECT_EQ(RoleOf(first), Role::kChief) << "TensorFlow's rule, unless specified otherwise";
  first.chief_type = "master";
  EXPECT_EQ(RoleOf(first), Role::kWorker);
  EXPECT_EQ(TrainingRank(first, first.task), 1);

  const TfConfig chief = *ParseTfConfig(
      R"({"cluster":{"worker":{},"ps":["p:1"],"chief":["c:1"]},"task":{"type":"chief","index":0}})");
  EXPECT_EQ(RoleOf(chief), Role::kChief);
  EXPECT_EQ(TrainingRank(chief, chief.task), 0);
}

TEST(TfConfig, ASparseServerKnowsItselfUnderItsIndex) {
  const char* text = R"({"cluster":{"worker":{},"ps":["p:2"]},"task":{"type":"ps","index":1}})";
  StatusOr<TfConfig> config = ParseTfConfig(text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.address({"ps", 1}), "p:2");
  EXPECT_EQ(RoleOf(*config), Role::kParameterServer);
  EXPECT_EQ(TrainingRank(*config, config->task), -1);
  EXPECT_EQ(Print(*config),
            R"({"cluster":{"ps":["p:2"],"worker":{}},"task":{"type":"ps","index":1}})");
}

TEST(TfConfig, TheEnvironmentSaysWhoTheChiefOfASparseJobIs) {
  setenv("TF_CONFIG",
         R"({"cluster":{"worker":{"0":"w:1"},"ps":["p:1"]},"task":{"type":"worker","index":0}})",
         1);
  setenv("TFJOB_CHIEF", "chief", 1);
  EXPECT_EQ(RoleOf(*TfConfigFromEnvironment()), Role::kWorker);
  setenv("TFJOB_CHIEF", "boss", 1);
  EXPECT_EQ(Message(TfConfigFromEnvironment().status()),
            "TFJOB_CHIEF: expected chief, master or worker, got 'boss'");
  unsetenv("TFJOB_CHIEF");
  EXPECT_EQ(RoleOf(*TfConfigFromEnvironment()), Role::kChief);
  unsetenv("TF_CONFIG");
}

TEST(GracePeriod, ComesFromTheEnvironment) {
  EXPECT_EQ(*GracePeriodFromEnvironment(), 30s);
  const auto given = [](const char* text) {
    setenv("TFJOB_GRACE_PERIOD_SECONDS", text, 1);
    const StatusOr<Duration> grace = GracePeriodFromEnvironment();
    unsetenv("TFJOB_GRACE_PERIOD_SECONDS");
    return grace;
  };
  EXPECT_EQ(*given("300"), 300s);
  EXPECT_EQ(*given("0"), 0s);
  EXPECT_EQ(*given("9223372036854775807"), 24h * 365);
  for (const char* bad : {"", "-1", "30s", "1e3", "0.5", "9223372036854775808", "NaN"}) {
    EXPECT_EQ(Message(given(bad).status()),
              StrCat("TFJOB_GRACE_PERIOD_SECONDS: expected a whole number of seconds from 0, got '",
                     bad, "'"));
  }
}

TEST(TfConfig, AloneWhenEmpty) {
  for (const char* text : {"", "{}"}) {
    StatusOr<TfConfig> config = ParseTfConfig(text);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config->cluster.empty());
    EXPECT_EQ(RoleOf(*config), Role::kChief);
  }
}

TEST(TfConfig, ChiefIsMasterOrElseWorkerZero) {
  TfConfig config =
      *ParseTfConfig(R"({"cluster":{"worker":["w:1","w:2"]},"task":{"type":"worker","index":0}})");
  EXPECT_EQ(RoleOf(config), Role::kChief);
  EXPECT_EQ(TrainingTasks(config).size(), 2u);
  config = *ParseTfConfig(
      R"({"cluster":{"master":["m:1"],"worker":["w:1"]},"task":{"type":"worker","index":0}})");
  EXPECT_EQ(RoleOf(config), Role::kWorker);
  EXPECT_EQ(ChiefOf(config), (Task{"master", 0}));
}

TEST(TfConfig, EvaluatorMayBeOutsideTheCluster) {
  StatusOr<TfConfig> config =
      ParseTfConfig(R"({"cluster":{"chief":["c:1"]},"task":{"type":"evaluator","index":0}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(RoleOf(*config), Role::kEvaluator);
}

TEST(TfConfig, RefusesWithThePathOfTheCulprit) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"{", "TF_CONFIG is not valid JSON: "},
      {"[]", "TF_CONFIG: the document: expected an object, got a list"},
      {R"({"cluster":{"worker":["w:1"]},"task":{"type":"worker","index":1}})",
       "TF_CONFIG task: the cluster has no /job:worker/task:1 (job \"worker\" has 1 addresses)"},
      {R"({"cluster":{"worker":["w:1"]},"task":{"type":"ps","index":0}})",
       "TF_CONFIG task: the cluster has no /job:ps/task:0 (no job \"ps\")"},
      {R"({"cluster":{"worker":["w:1"],"ps":["p:1","w:1"]},"task":{"type":"worker","index":0}})",
       "TF_CONFIG cluster.worker[0]: the address w:1 is also used by cluster.ps[1]; every task "
       "needs its own"},
      {R"({"cluster":{"worker":["w"]},"task":{"type":"worker","index":0}})",
       "TF_CONFIG: cluster.worker[0]: expected \"host:port\" with a port from 1 to 65535, got "
       "\"w\""},
      {R"({"cluster":{"worker":["w:1"]}})",
       "TF_CONFIG: task.type: expected a string, but it is missing"},
      {R"({"cluster":{"worker":["w:1"]},"task":{"type":"worker","index":-1}})",
       "TF_CONFIG: task.index: expected an index from 0, got -1"},
      {R"({"cluster":{"ps":{}},"task":{"type":"worker","index":2147483647}})",
       "TF_CONFIG: task.index: expected an index from 0, got 2147483647"},
      {R"({"cluster":{"worker":{"2147483647":"w:1"}},"task":{"type":"worker","index":0}})",
       "TF_CONFIG cluster.worker: expected task indexes as keys, got \"2147483647\""},
      {R"({"cluster":{"chief":["c:1"],"master":["m:1"]},"task":{"type":"chief","index":0}})",
       "TF_CONFIG cluster has both chief and master; keep one of them"},
      {R"({"task":{"type":"ps","index":0}})",
       "TF_CONFIG has no cluster, so the task must be worker 0, but it is /job:ps/task:0"},
  };
  for (const Case& c : cases)
    EXPECT_TRUE(ErrorOf(c.text).starts_with(c.message)) << ErrorOf(c.text);
}

TEST(MayHave, KnowsTheTasksOfAStaticCluster) {
  const TfConfig config = *ParseTfConfig(kStatic);
  for (const Task& task : {Task{"chief", 0}, Task{"ps", 1}, Task{"worker", 1}, Task{"evaluator", 0},
                           // Workers may be added while the job runs.
                           Task{"worker", 2}, Task{"worker", kMostTasks - 1}}) {
    EXPECT_TRUE(MayHave(config, task)) << ToString(task);
  }
  for (const Task& task : {Task{"chief", 1}, Task{"ps", 2}, Task{"master", 0}, Task{"evaluator", 1},
                           Task{"worker", -1}, Task{"worker", kMostTasks}, Task{"", 0}}) {
    EXPECT_FALSE(MayHave(config, task)) << ToString(task);
  }
  const TfConfig no_workers = *ParseTfConfig(
      R"({"cluster":{"chief":["a:1"],"ps":["p:1"]},"task":{"type":"ps","index":0}})");
  EXPECT_FALSE(MayHave(no_workers, {"worker", 0}));
}

TEST(MayHave, CannotKnowTheTasksOfASparseCluster) {
  TfConfig ps =
      *ParseTfConfig(R"({"cluster":{"worker":{},"ps":["p:1"]},"task":{"type":"ps","index":1}})");
  for (const Task& task : {Task{"worker", 7}, Task{"ps", 0}, Task{"chief", 0}, Task{"master", 0}}) {
    EXPECT_TRUE(MayHave(ps, task)) << ToString(task);
  }
  ps.chief_type = "chief";
  EXPECT_TRUE(MayHave(ps, {"chief", 0}));
  for (const Task& task :
       {Task{"chief", 1}, Task{"master", 0}, Task{"evaluator", 0}, Task{"worker", kMostTasks}}) {
    EXPECT_FALSE(MayHave(ps, task)) << ToString(task);
  }
}

}  // namespace
}  // namespace tfjob::cluster
