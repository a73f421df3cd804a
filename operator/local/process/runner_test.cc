#include "operator/local/process/runner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "operator/local/store/store.h"
#include "runtime/base/file.h"

namespace tfjob::process {
namespace {

using objects::PodPhase;

class RunnerTest : public ::testing::Test {
 protected:
  RunnerTest() {
    options_.state_dir = StrCat(::testing::TempDir(), "runner_test.", getpid());
    options_.environment = {{"PATH", "/usr/bin:/bin"}};
    options_.lifecycle.crash_backoff = {20ms, 100ms, 2.0, 0.0};
  }
  ~RunnerTest() override {
    runner_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(options_.state_dir, ignored);
  }

  void Start() {
    auto runner = Runner::Create(store_, options_);
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }
  static Json PodJson(const std::string& name, const std::string& script,
                      const std::string& policy = "Never") {
    return {{"metadata", {{"name", name}, {"namespace", "default"}}},
            {"spec",
             {{"restartPolicy", policy},
              {"containers",
               {{{"name", "tensorflow"}, {"image", "any"}, {"command", {"sh", "-c", script}}}}}}}};
  }
  void Create(const Json& pod) {
    const auto created = store_.Create(objects::Kind::kPod, pod);
    ASSERT_TRUE(created.ok()) << created.status();
  }
  static client::Key KeyOf(const std::string& name) {
    return {objects::Kind::kPod, "default", name};
  }
  // Returns the pod; null if it does not exist.
  std::shared_ptr<const objects::Pod> Get(const std::string& name) {
    const auto object = store_.Get(KeyOf(name));
    return object.ok() ? client::As<objects::Pod>(*object) : nullptr;
  }
  template <typename Condition>
  void Eventually(const Condition& condition, const std::string& what) {
    for (int i = 0; i < 4000 && !condition(); ++i) usleep(5000);
    ASSERT_TRUE(condition()) << what << "; the log: " << Log("pod");
  }
  void AwaitPhase(const std::string& name, PodPhase phase) {
    Eventually([&] { return Get(name) != nullptr && Get(name)->phase == phase; },
               StrCat(name, " never became ", objects::Name(phase)));
  }
  // Waits until the log contains `text` at or after the offset `from`.
  void AwaitLog(const std::string& text, size_t from = 0) {
    Eventually([&] { return Log("pod").find(text, from) != std::string::npos; }, text);
  }
  std::string Log(const std::string& pod) {
    return ReadFile(LogPath(options_, "default", pod, "tensorflow")).value_or("");
  }
  static bool Alive(pid_t pid) {
    const auto stat = ReadFile(StrCat("/proc/", pid, "/stat"));
    return stat.ok() && stat->find(") Z") == std::string::npos;
  }

  RunnerOptions options_;
  store::Store store_{{.node_name = "here"}};
  std::unique_ptr<Runner> runner_;
};

TEST_F(RunnerTest, RunsAPodToItsEnd) {
  Start();
  Create(PodJson("pod", "echo $HOSTNAME"));
  AwaitPhase("pod", PodPhase::kSucceeded);
  const auto pod = Get("pod");
  EXPECT_EQ(pod->pod_ip, "127.0.0.1");
  EXPECT_EQ(pod->containers[0].reason, "Completed");
  EXPECT_NE(pod->start_time, Time());
  EXPECT_EQ(Log("pod"), "pod\n");
}

TEST_F(RunnerTest, StartsPodsThatWereThereBefore) {
  Create(PodJson("pod", "exit 3"));
  Start();
  AwaitPhase("pod", PodPhase::kFailed);
  EXPECT_EQ(Get("pod")->containers[0].exit_code, 3);
  EXPECT_EQ(Get("pod")->containers[0].reason, "Error");
}

TEST_F(RunnerTest, RestartsAKilledContainerInPlaceAndAppendsToItsLog) {
  Start();
  Create(PodJson("pod", "echo pid $$$$; sleep 1000", "OnFailure"));
  size_t end = 0;
  for (int restart = 1; restart <= 3; ++restart) {
    AwaitLog("pid ", end);
    AwaitLog("\n", Log("pod").find("pid ", end));
    end = Log("pod").size();
    kill(std::stoi(Log("pod").substr(Log("pod").rfind("pid ") + 4)), SIGKILL);
    AwaitLog(StrCat("restart ", restart, " ---\n"), end);
  }
  Eventually([&] { return Get("pod")->restart_count() == 3; }, "the count");
  EXPECT_EQ(Get("pod")->phase, PodPhase::kRunning);
}

TEST_F(RunnerTest, DeletesGracefullyTheWholeGroup) {
  Start();
  Create(PodJson(
      "pod",
      "trap 'echo got TERM; exit 0' TERM; sleep 1000 & echo child $!; while :; do wait; done"));
  AwaitLog("child");
  const pid_t child = std::stoi(Log("pod").substr(Log("pod").find("child ") + 6));
  ASSERT_TRUE(store_.Delete(KeyOf("pod"), {}).ok());
  Eventually([&] { return Get("pod") == nullptr; }, "the pod stays");
  EXPECT_NE(Log("pod").find("got TERM"), std::string::npos);
  Eventually([&] { return !Alive(child); }, "the child lives");
}

TEST_F(RunnerTest, AnEndlessGracePeriodDoesNotKillAtOnce) {
  Start();
  Json pod =
      PodJson("pod", "trap 'echo got TERM; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
  pod["spec"]["terminationGracePeriodSeconds"] = INT64_MAX;
  Create(pod);
  AwaitLog("ready");
  ASSERT_TRUE(store_.Delete(KeyOf("pod"), {}).ok());
  Eventually([&] { return Get("pod") == nullptr; }, "the pod stays");
  EXPECT_NE(Log("pod").find("got TERM"), std::string::npos);
}

TEST_F(RunnerTest, KillsAfterTheGracePeriod) {
  Start();
  Create(PodJson("pod", "trap '' TERM; echo ready; while :; do sleep 0.05; done"));
  AwaitLog("ready");
  ASSERT_TRUE(store_.Delete(KeyOf("pod"), {std::nullopt, 1}).ok());
  EXPECT_TRUE(Get("pod")->metadata.terminating());
  Eventually([&] { return Get("pod") == nullptr; }, "the pod stays");
}

TEST_F(RunnerTest, ARecreatedPodOfTheSameNameRunsBesideTheOldOnesEnd) {
  Start();
  Create(PodJson("pod", "echo first; sleep 1000"));
  AwaitLog("first");
  ASSERT_TRUE(store_.Delete(KeyOf("pod"), {std::nullopt, 0}).ok());
  Create(PodJson("pod", "echo second"));
  AwaitPhase("pod", PodPhase::kSucceeded);
  EXPECT_NE(Log("pod").find("new pod ---\nsecond\n"), std::string::npos) << Log("pod");
}

TEST_F(RunnerTest, KillsWhatRunsWhenItGoes) {
  Start();
  Create(PodJson("pod", "trap '' TERM; echo pid $$$$; while :; do sleep 1000; done"));
  AwaitLog("pid ");
  const pid_t pid = std::stoi(Log("pod").substr(4));
  runner_.reset();
  EXPECT_FALSE(Alive(pid));
}

TEST_F(RunnerTest, InitContainersAndSidecarsShareVolumes) {
  Start();
  Json pod =
      PodJson("pod", "cat /tfjob-test/shared/from-init /tfjob-test/config/sub/training.yaml");
  Json& spec = pod["spec"];
  const Json mounts = {{{"name", "shared"}, {"mountPath", "/tfjob-test/shared"}},
                       {{"name", "config"}, {"mountPath", "/tfjob-test/config"}}};
  spec["volumes"] = {
      {{"name", "shared"}, {"emptyDir", Json::object()}},
      {{"name", "config"},
       {"configMap",
        {{"name", "settings"}, {"items", {{{"key", "text"}, {"path", "sub/training.yaml"}}}}}}}};
  spec["initContainers"] = {
      {{"name", "init"},
       {"command", {"sh", "-c", "echo from $WHO > /tfjob-test/shared/from-init"}},
       {"env", {{{"name", "WHO"}, {"value", "init"}}}},
       {"volumeMounts", mounts}}};
  spec["containers"][0]["volumeMounts"] = mounts;
  Create(pod);
  // The pod must wait for its ConfigMap, which may be created later.
  Eventually(
      [&] {
        const auto pod = Get("pod");
        return !pod->containers.empty() &&
               pod->containers[0].reason == "CreateContainerConfigError";
      },
      "not held");
  EXPECT_EQ(Get("pod")->containers[0].message,
            "volume \"config\" (configMap settings): there is no ConfigMap \"settings\"");
  ASSERT_TRUE(store_
                  .Create(objects::Kind::kConfigMap,
                          {{"apiVersion", "v1"},
                           {"kind", "ConfigMap"},
                           {"metadata", {{"name", "settings"}, {"namespace", "default"}}},
                           {"data", {{"text", "a: 1\n"}}}})
                  .ok());
  AwaitPhase("pod", PodPhase::kSucceeded);
  EXPECT_EQ(Log("pod"), "from init\na: 1\n");
  EXPECT_FALSE(std::filesystem::exists("/tfjob-test"));
}

TEST_F(RunnerTest, NamesAnImageThatCannotRunHere) {
  Start();
  Json pod = PodJson("pod", "");
  pod["spec"]["containers"][0].erase("command");
  Create(pod);
  Eventually(
      [&] {
        const auto pod = Get("pod");
        return !pod->containers.empty() && pod->containers[0].reason == "ErrImageNotLocal";
      },
      "no reason");
  EXPECT_NE(Get("pod")->containers[0].message.find("the image \"any\""), std::string::npos);
  EXPECT_EQ(Get("pod")->phase, PodPhase::kPending);
}

TEST_F(RunnerTest, AHostPathOfAnotherTypeFailsThePodWithItsName) {
  Start();
  Json pod = PodJson("pod", "true");
  pod["spec"]["volumes"] = {
      {{"name", "data"}, {"hostPath", {{"path", "/nowhere/data"}, {"type", "Directory"}}}}};
  pod["spec"]["containers"][0]["volumeMounts"] = {{{"name", "data"}, {"mountPath", "/data"}}};
  Create(pod);
  AwaitPhase("pod", PodPhase::kFailed);
  EXPECT_EQ(Get("pod")->containers[0].reason, "StartError");
  EXPECT_EQ(Get("pod")->containers[0].message,
            "volume \"data\" (hostPath /nowhere/data): type Directory requires an existing path, "
            "but there is none");
}

TEST_F(RunnerTest, CrashLoopsKeepThePodRunning) {
  Start();
  Create(PodJson("pod", "echo again; exit 1", "Always"));
  Eventually([&] { return Get("pod")->restart_count() >= 4; }, "no restarts");
  EXPECT_EQ(Get("pod")->phase, PodPhase::kRunning);
}

TEST_F(RunnerTest, AContainerSaysWhyItFailed) {
  Start();
  Create(PodJson(
      "pod", "printf 'reading\\nno such \\033[31mbucket\\377' > $TFJOB_TERMINATION_LOG; exit 3"));
  AwaitPhase("pod", PodPhase::kFailed);
  EXPECT_EQ(Get("pod")->containers[0].message, "no such [31mbucket?");
}

TEST_F(RunnerTest, EveryRunOfAContainerBeginsWithAnEmptyTerminationMessage) {
  Start();
  Create(PodJson("pod",
                 "test -s $TFJOB_TERMINATION_LOG && echo not empty; "
                 "echo words > $TFJOB_TERMINATION_LOG; exit 1",
                 "Always"));
  Eventually([&] { return Get("pod")->restart_count() >= 3; }, "no restarts");
  EXPECT_EQ(Log("pod").find("not empty"), std::string::npos) << Log("pod");
  Eventually([&] { return Get("pod")->containers[0].message.ends_with(": words"); }, "no words");
}

// If a container replaces its termination log with anything other than a regular file, the runner
// must not read it.
TEST_F(RunnerTest, ATerminationMessageIsReadFromARegularFileOnly) {
  Start();
  Create(PodJson("pod", "f=$TFJOB_TERMINATION_LOG; rm $f; ln -s /etc/passwd $f; exit 1", "Always"));
  Create(PodJson("pipe", "f=$TFJOB_TERMINATION_LOG; rm $f; mkfifo $f; exit 1", "Always"));
  for (const char* name : {"pod", "pipe"}) {
    Eventually([&] { return Get(name) != nullptr && Get(name)->restart_count() >= 3; }, name);
    Eventually([&] { return Get(name)->containers[0].message.ends_with(": exit code 1"); }, name);
  }
}

TEST_F(RunnerTest, CollectsProcessesThatEscapedTheirContainer) {
  options_.adopt_orphans = true;
  Start();
  Create(PodJson("pod", "setsid sh -c 'echo pid $$$$; sleep 1000' & sleep 0.1"));
  AwaitPhase("pod", PodPhase::kSucceeded);
  AwaitLog("pid ");
  const pid_t pid = std::stoi(Log("pod").substr(4));
  runner_.reset();
  EXPECT_FALSE(Alive(pid));
}

TEST_F(RunnerTest, CollectsTheChildrenOfThoseThatItCollects) {
  options_.adopt_orphans = true;
  Start();
  Create(PodJson("pod", "setsid sh -c 'sleep 1000 & echo pid $!; wait' & sleep 0.1"));
  AwaitPhase("pod", PodPhase::kSucceeded);
  AwaitLog("pid ");
  const pid_t pid = std::stoi(Log("pod").substr(4));
  runner_.reset();
  EXPECT_FALSE(Alive(pid));
}

}  // namespace
}  // namespace tfjob::process
