#include "runtime/cluster/sparse_cluster.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

namespace tfjob::cluster {
namespace {

// A task of a job with enableDynamicWorker, as its environment describes it.
struct Environment {
  std::string tf_config;
  std::string chief = {};     // TFJOB_CHIEF
  std::string patterns = {};  // TFJOB_ADDRESS_PATTERNS
};

StatusOr<TfConfig> Read(const Environment& environment) {
  setenv("TF_CONFIG", environment.tf_config.c_str(), 1);
  setenv("TFJOB_CHIEF", environment.chief.c_str(), 1);
  setenv(kAddressPatternsVariable, environment.patterns.c_str(), 1);
  StatusOr<TfConfig> config = TfConfigFromEnvironment();
  for (const char* name : {"TF_CONFIG", "TFJOB_CHIEF", kAddressPatternsVariable}) unsetenv(name);
  return config;
}

// Lists the tasks that may train in a job with at most this many of them.
StatusOr<TfConfig> List(const Environment& environment, int tasks) {
  ASSIGN_OR_RETURN(const TfConfig config, Read(environment));
  return ListTasks(config, tasks);
}

// The TF_CONFIG of a worker or a chief in a job without ps tasks.
std::string Worker(int index, const std::string& address) {
  return StrCat(R"({"cluster":{"worker":{")", index, R"(":")", address,
                R"("},"ps":null},"task":{"type":"worker","index":)", index, "}}");
}
std::string Chief(const std::string& address, const std::string& type = "chief") {
  return StrCat(R"({"cluster":{"worker":{},"ps":[],")", type, R"(":[")", address,
                R"("]},"task":{"type":")", type, R"(","index":0}})");
}

// One line per task: "worker 1 at w:1".
std::string Text(const TfConfig& config) {
  std::string text;
  for (const Task& task : TrainingTasks(config)) {
    text += StrCat(task.type, " ", task.index, " at ", config.cluster.address(task), "\n");
  }
  return text;
}

constexpr char kLoopback[] =
    R"({"chief":"127.0.0.1:{20000+index}","worker":"127.0.0.1:{20001+index}"})";

TEST(ListTasks, FollowFromTheNameOfATaskOrFromThePatterns) {
  struct Case {
    Environment environment;
    int tasks;
    const char* listed;
  };
  const Case cases[] = {
      {{Worker(3, "mnist-worker-3.ns.svc:2222"), "chief"},
       3,
       "chief 0 at mnist-chief-0.ns.svc:2222\nworker 0 at mnist-worker-0.ns.svc:2222\n"
       "worker 1 at mnist-worker-1.ns.svc:2222\nworker 3 at mnist-worker-3.ns.svc:2222\n"},
      {{Worker(1, "mnist-worker-1.ns.svc:2222"), "worker"},
       2,
       "worker 0 at mnist-worker-0.ns.svc:2222\nworker 1 at mnist-worker-1.ns.svc:2222\n"},
      {{Worker(0, "a-worker-0-worker-0.ns.svc.cluster.local:3333"), "master"},
       2,
       "master 0 at a-worker-0-master-0.ns.svc.cluster.local:3333\n"
       "worker 0 at a-worker-0-worker-0.ns.svc.cluster.local:3333\n"},
      {{Worker(0, "j-worker-0:1"), "worker"}, 1, "worker 0 at j-worker-0:1\n"},
      {{Chief("mnist-chief-0.ns.svc:2222")},
       2,
       "chief 0 at mnist-chief-0.ns.svc:2222\nworker 0 at mnist-worker-0.ns.svc:2222\n"},
      {{Chief("mnist-master-0.ns.svc:2222", "master")},
       1,
       "master 0 at mnist-master-0.ns.svc:2222\n"},
      // The patterns take precedence, because the types may have different ports.
      {{Worker(0, "m-worker-0.ns.svc:2222"), "",
        R"({"master":"m-master-{index}.ns.svc:3333","worker":"m-worker-{index}.ns.svc:2222"})"},
       2,
       "master 0 at m-master-0.ns.svc:3333\nworker 0 at m-worker-0.ns.svc:2222\n"},
      {{Worker(1, "127.0.0.1:20002"), "chief", kLoopback},
       3,
       "chief 0 at 127.0.0.1:20000\nworker 0 at 127.0.0.1:20001\nworker 1 at 127.0.0.1:20002\n"},
      {{Worker(1, "[fd00::1]:8"), "", R"({"worker":"[fd00::1]:{7+index}"})"},
       2,
       "worker 0 at [fd00::1]:7\nworker 1 at [fd00::1]:8\n"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.environment.tf_config);
    const StatusOr<TfConfig> listed = List(c.environment, c.tasks);
    ASSERT_TRUE(listed.ok()) << listed.status();
    EXPECT_EQ(Text(*listed), c.listed);
    EXPECT_TRUE(listed->open);
    EXPECT_FALSE(listed->cluster.sparse());
    TfConfig sparse = *Read(c.environment);
    sparse.chief_type = listed->chief_type;
    EXPECT_EQ(TrainingRank(*listed, listed->task),
              std::min(TrainingRank(sparse, sparse.task), c.tasks))
        << "the task keeps its rank, unless it is beyond the last one";
  }
}

TEST(ListTasks, AgreeInAllTasksOfAJob) {
  const StatusOr<TfConfig> chief = List({Chief("127.0.0.1:20000"), "chief", kLoopback}, 3);
  const StatusOr<TfConfig> worker = List({Worker(1, "127.0.0.1:20002"), "chief", kLoopback}, 3);
  ASSERT_TRUE(chief.ok() && worker.ok()) << chief.status() << worker.status();
  EXPECT_EQ(Text(*chief), Text(*worker));
  EXPECT_EQ(RoleOf(*chief), Role::kChief);
  EXPECT_EQ(RoleOf(*worker), Role::kWorker);
  EXPECT_TRUE(MayHave(*chief, {"worker", 9}));
}

TEST(ListTasks, ContainTheServersAndTheEvaluator) {
  const StatusOr<TfConfig> listed = List(
      {R"({"cluster":{"worker":{"0":"w-0:1"},"ps":["p:1"]},"task":{"type":"worker","index":0}})",
       "", R"({"evaluator":"e-{index}:1","worker":"w-{index}:1"})"},
      2);
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->cluster.address({"evaluator", 0}), "e-0:1");
  EXPECT_EQ(listed->cluster.address({"ps", 0}), "p:1");
}

TEST(ListTasks, RefuseWhatCannotBeDerived) {
  struct Case {
    Environment environment;
    int tasks;
    const char* message;
  };
  const Case cases[] = {
      {{Worker(1, "m-worker-1:1")}, 2, "TFJOB_CHIEF: expected the type of the task that leads"},
      {{Chief("m-trainer-0:1", "trainer")}, 2, "TFJOB_CHIEF: expected the type of the task that "},
      {{Worker(1, "127.0.0.1:20002"), "worker"},
       2,
       "TFJOB_ADDRESS_PATTERNS: this TF_CONFIG lists only the task itself, and the addresses of "
       "the other tasks do not follow from the task's own one, 127.0.0.1:20002, which does not "
       "begin with JOB-worker-1; set the variable in all tasks of the job, for example to "
       R"({"worker":"JOB-worker-{index}:2222"}, where {index} may also be part of a port)"},
      {{Worker(1, "m-worker-2.ns.svc:1"), "worker"}, 2, "TFJOB_ADDRESS_PATTERNS: this TF_CONFIG"},
      {{Worker(1, "m-worker-11.ns.svc:1"), "worker"}, 2, "TFJOB_ADDRESS_PATTERNS: this TF_CONFIG"},
      {{Worker(1, "-worker-1.ns.svc:1"), "worker"}, 2, "TFJOB_ADDRESS_PATTERNS: this TF_CONFIG"},
      {{Worker(1, "[::1]:1"), "worker"}, 2, "TFJOB_ADDRESS_PATTERNS: this TF_CONFIG"},
      {{Worker(1, "w-1:1"), "chief", R"({"worker":"w-{index}:1"})"},
       2,
       "TFJOB_CHIEF: expected worker, which leads the tasks in TFJOB_ADDRESS_PATTERNS, got chief; "
       "give both variables the values of the same job"},
      {{Chief("c-0:1"), "", R"({"chief":"c-{index}:1"})"},
       2,
       "TFJOB_ADDRESS_PATTERNS: expected the addresses of the tasks of type worker, got "
       R"({"chief":"c-{index}:1"})"},
      {{Chief("c-0:1"), "", R"({"master":"c-{index}:1","worker":"w-{index}:1"})"},
       2,
       "TFJOB_CHIEF: /job:master/task:0 leads the tasks of the job, and /job:chief/task:0, which "
       "this task is according to TF_CONFIG, cannot be another of them"},
      {{Worker(1, "w-1:1"), "", R"({"worker":"v-{index}:1"})"},
       2,
       "TFJOB_ADDRESS_PATTERNS: worker: expected a pattern in which /job:worker/task:1 has its "
       R"(address in TF_CONFIG, w-1:1, got "v-{index}:1", in which it has v-1:1)"},
      {{Worker(0, "127.0.0.1:65535"), "", R"({"worker":"127.0.0.1:{65535+index}"})"},
       2,
       "TFJOB_ADDRESS_PATTERNS: /job:worker/task:1 would have the address 127.0.0.1:65536, "
       "expected host:port with a port from 1 to 65535"},
      {{Chief("h:1"), "", R"({"chief":"h:{1+index}","worker":"h:{1+index}"})"},
       2,
       "TFJOB_ADDRESS_PATTERNS: /job:chief/task:0 and /job:worker/task:0 would both have the "
       "address h:1; every task needs its own"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const Status refused = List(c.environment, c.tasks).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(Message(refused).starts_with(c.message)) << refused;
  }
}

TEST(AddressPatterns, ReadBack) {
  for (const char* text : {"mnist-worker-{index}.ns.svc:2222", "127.0.0.1:{20001+index}",
                           "w{7+index}:1", "[::1]:{65535+index}"}) {
    const StatusOr<AddressPattern> pattern = ParseAddressPattern(text);
    ASSERT_TRUE(pattern.ok()) << pattern.status();
    EXPECT_EQ(Print(*pattern), text);
  }
  EXPECT_EQ((*ParseAddressPattern("h:{007+index}"))(3), "h:10");
  EXPECT_EQ(Print(*ParseAddressPatterns(kLoopback)), kLoopback);
}

TEST(AddressPatterns, RefuseInvalidText) {
  for (const char* text : {"",
                           "h:1",
                           "{index}",
                           "h:{index}",
                           ":{1+index}",
                           "h-{index}",
                           "h-{index}:0",
                           "h-{index}:x",
                           "h-{index}:{1+index}",
                           "h-{index}-{index}:1",
                           "h-{i}:1",
                           "h-{ index}:1",
                           "h-{+index}:1",
                           "h-{-1+index}:1",
                           "h-{1+index:1",
                           "h-1+index}:1",
                           "index}h-{:1",
                           "h}-{index}:1",
                           "h-{index}}:1",
                           "h:{65536+index}",
                           "h-{99999999999999999999+index}:1",
                           "h-{1 +index}:1"}) {
    EXPECT_EQ(ParseAddressPattern(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  const std::pair<const char*, const char*> cases[] = {
      {"{", "TFJOB_ADDRESS_PATTERNS is not valid JSON: "},
      {"[]", "TFJOB_ADDRESS_PATTERNS: expected an object, got a list"},
      {R"({"worker":1})", "TFJOB_ADDRESS_PATTERNS.worker: expected a string, got 1"},
      {R"({"ps":"p-{index}:1"})",
       "TFJOB_ADDRESS_PATTERNS: expected the types chief, master, worker and evaluator, got "
       "\"ps\""},
      {R"({"chief":"c-{index}:1","master":"m-{index}:1"})",
       "TFJOB_ADDRESS_PATTERNS: has both chief and master; keep one of them"},
      {R"({"worker":"w:1"})",
       "TFJOB_ADDRESS_PATTERNS: worker: expected \"host:port\" with one placeholder, {index} or "
       "{NUMBER+index} with a number from 0 to 65535, such as \"mnist-worker-{index}.ns.svc:2222\","
       " got \"w:1\""},
  };
  for (const auto& [text, message] : cases) {
    const Status refused = ParseAddressPatterns(text).status();
    EXPECT_TRUE(Message(refused).starts_with(message)) << refused;
    EXPECT_EQ(Read({Worker(0, "w-0:1"), "", text}).status(), refused);
  }
}

// In the list form, TF_CONFIG itself contains the addresses.
TEST(AddressPatterns, AreNotUsedInTheListForm) {
  const StatusOr<TfConfig> config =
      Read({R"({"cluster":{"worker":["w:1","w:2"]},"task":{"type":"worker","index":0}})", "",
            R"({"worker":"v-{index}:1"})"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->patterns.empty());
  EXPECT_EQ(config->chief_type, "");
}

}  // namespace
}  // namespace tfjob::cluster
