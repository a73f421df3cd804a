// Tests the local verbs as a user calls them: exit codes, output, and the files that they
// leave behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "operator/cli/command_line.h"
#include "operator/local/run/run.h"
#include "runtime/base/file.h"

namespace tfjob::cli {
namespace {

class CmdTest : public ::testing::Test {
 protected:
  CmdTest() {
    folder_ = StrCat(::testing::TempDir(), "cmd_test.", getpid());
    EXPECT_TRUE(MakeDirectories(folder_ + "/tmp").ok());
    setenv("TMPDIR", (folder_ + "/tmp").c_str(), 1);
  }
  ~CmdTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // Runs the command line with `input` as standard input.
  int Call(std::vector<const char*> arguments, const std::string& input = "") {
    in_.str(input);
    in_.clear();
    out_.str("");
    err_.str("");
    arguments.insert(arguments.begin(), "tfjob");
    const CommandLine line =
        ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(), console_);
    const Connect nowhere = [](const ClusterFlags&) -> StatusOr<std::unique_ptr<Cluster>> {
      return InvalidArgument("there is no cluster in this test");
    };
    return RunCommandLine(line, nowhere, *stop_, console_);
  }
  // Returns the output of the worker of job x so far.
  std::string WorkerLog() {
    return ReadFile(folder_ + "/state/logs/x-worker-0/tensorflow.log").value_or("");
  }
  std::vector<std::string> LeftBehind() { return *ListDirectory(folder_ + "/tmp"); }

  std::string folder_;
  std::istringstream in_;
  std::ostringstream out_, err_;
  view::Console console_{in_, out_, err_, false};
  std::unique_ptr<StopSource> stop_ = std::make_unique<StopSource>();
};

// Returns the manifest of a job whose replicas run shell scripts.
std::string Job(const std::string& name, const std::string& replicas,
                const std::string& policy = "{}") {
  return StrCat("---\napiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: ", name,
                "}\nspec:\n  runPolicy: ", policy, "\n  tfReplicaSpecs:\n", replicas);
}
std::string Replica(const std::string& type, const std::string& script,
                    const std::string& rest = "") {
  return StrCat(
      "    ", type, ":\n      ", rest, "\n      template:\n        spec:\n          containers:\n",
      "            - {name: tensorflow, image: any, command: [sh, -c, '", script, "']}\n");
}

TEST_F(CmdTest, BadUsageEndsWith2) {
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{},
                                             {"nonsense"},
                                             {"run"},
                                             {"run", "a", "b"},
                                             {"run", "a", "--nonsense"},
                                             {"explain", "a"},
                                             {"explain", "a", "--print=nonsense"},
                                             {"explain", "a", "--print=plan", "-o", "xml"},
                                             {"explain", "a", "--print=plan", "--now=yesterday"},
                                             {"--log-level=loud", "version"},
                                             {"run", "a", "--crash-backoff=-1"},
                                             {"validate"},
                                             {"describe"},
                                             {"get", "-o", "xml"},
                                             {"get", "-A", "x"},
                                             {"get", "-A", "-n", "x"},
                                             {"get", "-l", "team"},
                                             {"get", "--request-timeout=soon"},
                                             {"-n", "x", "version"},
                                             {"logs"},
                                             {"logs", "a", "b"},
                                             {"logs", "a", "-f", "-p"},
                                             {"logs", "a", "--tail=-1"},
                                             {"logs", "a", "--since=yesterday"},
                                             {"logs", "a", "--replica=wroker"},
                                             {"scale", "a"},
                                             {"scale", "a", "b", "--replicas=1"},
                                             {"scale", "a", "--replicas=-1"},
                                             {"suspend"},
                                             {"restart", "a", "--replica=worker/x"},
                                             {"wait", "a"},
                                             {"wait", "a", "--for=Done"},
                                             {"wait", "a", "--for=Failed", "--timeout=x"},
                                             {"completion", "csh"}}) {
    EXPECT_EQ(Call(arguments), view::kBadInput);
    EXPECT_FALSE(err_.str().empty());
    EXPECT_TRUE(out_.str().empty());
  }
  EXPECT_EQ(Call({"--help"}), view::kSucceeded);
  EXPECT_NE(out_.str().find("explain"), std::string::npos);
}

TEST_F(CmdTest, UsageErrorsNameTheProgramAndWhatIsWrong) {
  const std::vector<std::pair<std::vector<const char*>, const char*>> cases = {
      {{}, "tfjob: a command is missing: get, describe, "},
      {{"descibe"}, "tfjob: unknown command descibe; did you mean \"describe\"?\n"},
      {{"--nonsense"}, "tfjob: unknown flag --nonsense\n"},
      {{"run"}, "tfjob: run: no manifest given: name a FILE, or - for stdin\n"},
      {{"run", "a", "-f", "b"}, "tfjob: "},
      {{"get", "--nonsense"}, "tfjob: The following argument was not expected: --nonsense\n"},
      {{"explain", "a", "--print=all"}, "tfjob: --print: all not in {defaults,verdict,"},
      {{"run", "a", "--crash-backoff=-1"},
       "tfjob: --crash-backoff: expected a number of 0 or more, got -1\n"}};
  for (const auto& [arguments, message] : cases) {
    EXPECT_EQ(Call(arguments), view::kBadInput);
    EXPECT_TRUE(err_.str().starts_with(message)) << err_.str();
  }
}

TEST_F(CmdTest, HelpAndVersionAreWordsAndFlags) {
  for (const char* word : {"help", "--help", "-h"}) {
    EXPECT_EQ(Call({word}), view::kSucceeded);
    EXPECT_NE(out_.str().find("explain"), std::string::npos) << out_.str();
  }
  EXPECT_EQ(Call({"help", "explain"}), view::kSucceeded);
  EXPECT_NE(out_.str().find("--print TEXT:{defaults,verdict,objects,plan} REQUIRED"),
            std::string::npos)
      << out_.str();
  EXPECT_EQ(Call({"run", "--help"}), view::kSucceeded);
  EXPECT_EQ(out_.str().find("REQUIRED"), std::string::npos) << out_.str();
  EXPECT_EQ(Call({"version"}), view::kSucceeded);
  const std::string version = out_.str();
  EXPECT_EQ(Call({"--version"}), view::kSucceeded);
  EXPECT_EQ(out_.str(), version);
}

TEST_F(CmdTest, OutputThatCannotBeWrittenIsAFailure) {
  out_.setstate(std::ios::failbit);
  EXPECT_EQ(Call({"validate", "-"}, Job("x", Replica("Worker", "true"))), view::kFailed);
  EXPECT_EQ(err_.str(), "tfjob: the output cannot be written\n");
  out_.clear();
}

TEST_F(CmdTest, AMissingFileEndsWith2) {
  EXPECT_EQ(Call({"run", "/nowhere.yaml"}), view::kBadInput);
  EXPECT_EQ(err_.str(), "tfjob: open /nowhere.yaml: No such file or directory\n");
  EXPECT_EQ(Call({"explain", "/nowhere.yaml", "--print=plan"}), view::kBadInput);
  EXPECT_EQ(Call({"validate", "/nowhere.yaml"}), view::kBadInput);
}

struct BadManifest {
  const char* what;
  std::string text;
  const char* error;  // a part of the error message, which must be a single line
};

std::vector<BadManifest> BadManifests() {
  const std::string worker = Replica("Worker", "true");
  const std::string good = Job("good", worker);
  return {
      {"not YAML", "a: [b", "standard input"},
      {"no object", "just text", "expected an object"},
      {"nothing", "", "contains no document"},
      {"wrong type", Job("x", Replica("Worker", "true", "replicas: many")),
       "spec.tfReplicaSpecs.Worker.replicas"},
      {"unknown replica type", Job("x", Replica("Wroker", "true")), "spec.tfReplicaSpecs.Wroker"},
      {"keys that differ in case", Job("x", worker + Replica("worker", "true")),
       "spec.tfReplicaSpecs"},
      {"negative replicas", Job("x", Replica("Worker", "true", "replicas: -1")),
       "spec.tfReplicaSpecs.Worker.replicas"},
      {"no container tensorflow",
       Job("x",
           "    Worker: {template: {spec: {containers: [{name: other, image: any, command: "
           "[\"true\"]}]}}}\n"),
       "tensorflow"},
      {"a service name too long", Job(std::string(60, 'a'), worker), "metadata.name"},
      {"Chief and Master", Job("x", Replica("Chief", "true") + Replica("Master", "true")),
       "spec.tfReplicaSpecs"},
      {"a good job before a bad one", good + Job("x", Replica("Worker", "true", "replicas: -1")),
       "document 2 (TFJob \"x\")"},
  };
}

TEST_F(CmdTest, BadManifestsGiveOneErrorAndStartNothing) {
  for (const BadManifest& bad : BadManifests()) {
    SCOPED_TRACE(bad.what);
    EXPECT_EQ(Call({"run", "-"}, bad.text), view::kBadInput);
    const std::string error = err_.str();
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
    EXPECT_NE(error.find(bad.error), std::string::npos) << error;
    EXPECT_TRUE(error.starts_with("tfjob: standard input")) << error;
    EXPECT_EQ(out_.str(), "");
    EXPECT_TRUE(LeftBehind().empty());
    EXPECT_EQ(Call({"explain", "-", "--print=objects"}, bad.text), view::kBadInput);
    EXPECT_EQ(err_.str(), error);
    EXPECT_EQ(Call({"validate", "-"}, bad.text), view::kBadInput);
    EXPECT_NE(out_.str().find("standard input: 1 error\n"), std::string::npos) << out_.str();
  }
}

TEST_F(CmdTest, RunsSeveralJobsFromStandardInput) {
  const std::string jobs =
      Job("one", Replica("Worker", "echo accuracy=0.75 evaluated", "replicas: 2")) +
      Job("two", Replica("Chief", "echo $TF_CONFIG") + Replica("PS", "sleep 1000"));
  EXPECT_EQ(Call({"run", "-", "--follow"}, jobs), view::kSucceeded) << err_.str();
  const std::string out = out_.str();
  EXPECT_NE(out.find("one: Succeeded"), std::string::npos) << out;
  EXPECT_NE(out.find("two: Succeeded"), std::string::npos) << out;
  EXPECT_NE(out.find("two-chief-0 | {\"cluster\":{\"chief\":[\"127.0.0.1:"), std::string::npos)
      << out;
  EXPECT_NE(out.find("one: test accuracy 0.75\n"), std::string::npos) << out;
  EXPECT_NE(out.find(StrCat("logs: ", folder_, "/tmp/tfjob-one-")), std::string::npos) << out;
  ASSERT_EQ(LeftBehind().size(), 1u);
  EXPECT_EQ(*ListDirectory(StrCat(folder_, "/tmp/", LeftBehind()[0])),
            (std::vector<std::string>{"lock", "logs"}));
}

TEST_F(CmdTest, OnlyOneRunAtATimeUsesAStateFolder) {
  ASSERT_TRUE(MakeDirectories(folder_ + "/state").ok());
  const std::string state = folder_ + "/state", lock = state + "/lock";
  const int other = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  const std::string job = Job("x", Replica("Worker", "true"));
  EXPECT_EQ(Call({"run", "-", "--state-dir", state.c_str()}, job), view::kBadInput);
  EXPECT_NE(err_.str().find(lock), std::string::npos) << err_.str();
  close(other);
  EXPECT_EQ(Call({"run", "-", "--state-dir", state.c_str()}, job), view::kSucceeded);
}

TEST_F(CmdTest, AFailedJobEndsWith1) {
  EXPECT_EQ(Call({"run", "-"}, Job("x", Replica("Worker", "echo it is broken; exit 7"))),
            view::kFailed);
  EXPECT_NE(out_.str().find("tensorflow.log:\n  it is broken\n"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("x-worker-0: tensorflow exited with code 7 (Error)"), std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find("x: Failed"), std::string::npos) << out_.str();
}

TEST_F(CmdTest, CrashesAreBoundedByTheBackoffLimit) {
  EXPECT_EQ(
      Call({"run", "-", "--crash-backoff=0.01"},
           Job("x", Replica("Worker", "exit 7", "restartPolicy: OnFailure"), "{backoffLimit: 3}")),
      view::kFailed);
  EXPECT_NE(out_.str().find("restarted, "), std::string::npos) << out_.str();
}

TEST_F(CmdTest, AFailedJobsLastWordsArePrinted) {
  EXPECT_EQ(Call({"run", "-"}, Job("x", Replica("Worker",
                                                "echo no such bucket > $TFJOB_TERMINATION_LOG; "
                                                "exit 2"))),
            view::kFailed);
  EXPECT_NE(out_.str().find("exited with code 2 (Error: no such bucket)"), std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find(" Pod x-worker-0: no such bucket"), std::string::npos) << out_.str();
}

// Each run creates its own key and passes it to all its processes.
TEST_F(CmdTest, ARunMakesAKey) {
  std::set<std::string> keys;
  for (const char* run : {"one", "two"}) {
    const std::string folder = StrCat(folder_, "/", run);
    ASSERT_TRUE(MakeDirectories(folder).ok());
    const std::string script = StrCat("echo $TFJOB_KEY > ", folder, "/$HOSTNAME");
    const std::string job =
        Job("x", Replica("Worker", script, "replicas: 3")) + "  successPolicy: AllWorkers\n";
    ASSERT_EQ(Call({"run", "-"}, job), view::kSucceeded) << out_.str() << err_.str();
    std::set<std::string> of_run;
    for (const char* pod : {"x-worker-0", "x-worker-1", "x-worker-2"}) {
      of_run.insert(ReadFile(StrCat(folder, "/", pod)).value_or("none"));
    }
    ASSERT_EQ(of_run.size(), 1u);
    const std::string key = of_run.begin()->substr(0, of_run.begin()->size() - 1);
    EXPECT_EQ(key.size(), 64u) << key;
    EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos) << key;
    EXPECT_EQ((out_.str() + err_.str()).find(key), std::string::npos);
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 2u);
}

TEST_F(CmdTest, KeepLeavesVolumes) {
  const std::string state = folder_ + "/state";
  const std::string job =
      "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec: {tfReplicaSpecs: "
      "{Worker: {template: {spec: "
      "{containers: [{name: tensorflow, image: any, command: [sh, -c, 'echo kept > "
      "/tfjob-nowhere/file'], volumeMounts: "
      "[{name: v, mountPath: /tfjob-nowhere}]}], volumes: [{name: v, emptyDir: {}}]}}}}}\n";
  EXPECT_EQ(Call({"run", "-", "--keep", "--state-dir", state.c_str()}, job), view::kSucceeded)
      << out_.str() << err_.str();
  const auto pods = *ListDirectory(state + "/pods");
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(ReadFile(StrCat(state, "/pods/", pods[0], "/volumes/v/file")).value_or("?"), "kept\n");
  // The next run, without --keep, must remove its own volumes. It must not remove the volumes that
  // the first run has kept, or folders that no run created.
  ASSERT_TRUE(MakeDirectories(state + "/claims/theirs").ok());
  EXPECT_EQ(Call({"run", "-", "--state-dir", state.c_str()}, job), view::kSucceeded);
  EXPECT_EQ(*ListDirectory(state + "/pods"), pods);
  EXPECT_EQ(ReadFile(StrCat(state, "/pods/", pods[0], "/volumes/v/file")).value_or("?"), "kept\n");
  EXPECT_EQ(*ListDirectory(state + "/claims"), std::vector<std::string>{"theirs"});
  const std::string fresh = folder_ + "/fresh";
  EXPECT_EQ(Call({"run", "-", "--state-dir", fresh.c_str()}, job), view::kSucceeded);
  EXPECT_EQ(*ListDirectory(fresh), (std::vector<std::string>{"lock", "logs"}));
}

// Checks that the next run finds what a job wrote to a claim, as in a cluster.
TEST_F(CmdTest, ClaimsOutliveTheRun) {
  const auto job = [](const std::string& command) {
    return StrCat(
        "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x, namespace: team}\nspec: "
        "{tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: any, "
        "command: [sh, -c, '",
        command,
        "'], volumeMounts: [{name: v, mountPath: /tfjob-nowhere}]}], volumes: [{name: v, "
        "persistentVolumeClaim: {claimName: models}}]}}}}}\n");
  };
  const std::string claims = folder_ + "/claims";
  const std::string flag = "--claims-dir=" + claims;
  EXPECT_EQ(Call({"run", "-", flag.c_str()}, job("echo trained > /tfjob-nowhere/file")),
            view::kSucceeded)
      << out_.str() << err_.str();
  EXPECT_EQ(ReadFile(claims + "/team/models/file").value_or("?"), "trained\n");
  EXPECT_EQ(Call({"run", "-", flag.c_str()}, job("grep trained /tfjob-nowhere/file")),
            view::kSucceeded)
      << out_.str() << err_.str();
  ASSERT_EQ(setenv("XDG_DATA_HOME", (folder_ + "/data").c_str(), 1), 0);
  EXPECT_EQ(Call({"run", "-"}, job("echo default > /tfjob-nowhere/file")), view::kSucceeded);
  EXPECT_EQ(ReadFile(folder_ + "/data/tfjob/claims/team/models/file").value_or("?"), "default\n");
  unsetenv("XDG_DATA_HOME");
}

TEST_F(CmdTest, AStopEndsPodsGracefullyAndGivesTheSignal) {
  std::thread stopper([this] {
    for (int i = 0; i < 2000 && WorkerLog().empty(); ++i) usleep(5000);
    stop_->Request(SIGTERM);
  });
  const std::string state = folder_ + "/state";
  const int code = Call(
      {"run", "-", "--follow", "--state-dir", state.c_str()},
      Job("x", Replica("Worker",
                       "trap \"echo bye; exit 0\" TERM; echo up; while :; do sleep 0.01; done")));
  stopper.join();
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_NE(out_.str().find("x-worker-0 | bye\n"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("x: stopped"), std::string::npos) << out_.str();
}

// Accepts a few lines, and then fails at every flush.
class BrokenBuffer : public std::stringbuf {
 protected:
  int sync() override { return std::count(str_.begin(), str_.end(), '\n') < 3 ? 0 : -1; }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    str_.append(text, static_cast<size_t>(size));
    return size;
  }

 private:
  std::string str_;
};

TEST_F(CmdTest, OutputThatBreaksEndsTheRunAsASignalDoes) {
  BrokenBuffer buffer;
  std::ostream out(&buffer);
  view::Console console{in_, out, err_, false};
  in_.str(Job(
      "x",
      Replica("Worker", "trap \"echo bye; exit 0\" TERM; while :; do echo up; sleep 0.01; done")));
  local::RunOptions options;
  options.file = "-";
  options.follow = true;
  options.state_dir = folder_ + "/state";
  EXPECT_EQ(local::Run(options, *stop_, console), 128 + SIGPIPE);
  EXPECT_TRUE(WorkerLog().ends_with("bye\n")) << WorkerLog();
  EXPECT_NE(err_.str().find("its output cannot be written"), std::string::npos) << err_.str();
}

TEST_F(CmdTest, ExplainTakesTheObjectsThatItPrints) {
  const std::string job = Job("x", Replica("Worker", "true"));
  const std::pair<const char*, const char*> cases[] = {
      {"--gang-scheduler-name=volcano", "kind: PodGroup"},
      {"--job-network-policies=all", "kind: NetworkPolicy"}};
  const std::string observed = folder_ + "/observed.yaml";
  for (const auto& [flag, kind] : cases) {
    EXPECT_EQ(Call({"explain", "-", "--print=objects", flag}, job), view::kSucceeded) << err_.str();
    ASSERT_NE(out_.str().find(kind), std::string::npos) << out_.str();
    ASSERT_TRUE(WriteFileAtomically(observed, out_.str()).ok());
    EXPECT_EQ(Call({"explain", "-", "--print=verdict", flag, "--observed", observed.c_str()}, job),
              view::kSucceeded)
        << err_.str();
    EXPECT_EQ(out_.str().find("NetworkPolicy"), std::string::npos) << out_.str();
  }
}

TEST_F(CmdTest, ExplainReadsWhatIsObserved) {
  const std::string observed = folder_ + "/observed.yaml";
  ASSERT_TRUE(WriteFileAtomically(observed,
                                  "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: "
                                  "Node, metadata: {name: node-1}}\n")
                  .ok());
  const std::string job = Job("x", Replica("Worker", "true"));
  EXPECT_EQ(Call({"explain", "-", "--print=plan", "--observed", observed.c_str()}, job),
            view::kBadInput);
  EXPECT_NE(err_.str().find("kind: expected Pod, Service, PodGroup, Workload or NetworkPolicy"),
            std::string::npos)
      << err_.str();
  EXPECT_EQ(Call({"explain", "-", "--print=objects", "-o", "json"}, job), view::kSucceeded);
  EXPECT_NE(out_.str().find("\"kind\": \"List\""), std::string::npos) << out_.str();
  EXPECT_EQ(
      Call({"explain", "-", "--print=plan", "-o", "json", "--gang-scheduler-name=volcano"}, job),
      view::kSucceeded);
  EXPECT_NE(out_.str().find("PodGroup"), std::string::npos) << out_.str();
  EXPECT_EQ(
      Call({"explain", "-", "--print=objects", "-o", "json", "--cluster-domain=cluster.local"},
           Job("x", Replica("Worker", "true", "replicas: 2"))),
      view::kSucceeded);
  EXPECT_NE(out_.str().find(".svc.cluster.local:"), std::string::npos) << out_.str();
  EXPECT_EQ(Call({"explain", "-", "--print=defaults", "--default-clean-pod-policy=Running"}, job),
            view::kSucceeded);
  EXPECT_NE(out_.str().find("cleanPodPolicy: Running"), std::string::npos) << out_.str();
  EXPECT_EQ(Call({"explain", "-", "--print=verdict"},
                 "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"),
            view::kBadInput);
  EXPECT_EQ(err_.str(), "tfjob: standard input: contains no TFJob\n");
}

}  // namespace
}  // namespace tfjob::cli
