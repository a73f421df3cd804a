#include "operator/local/run/local_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "operator/local/process/options.h"
#include "operator/local/run/run.h"
#include "operator/local/run/workload.h"
#include "operator/view/console.h"
#include "runtime/base/log.h"
#include "runtime/base/stop.h"

namespace tfjob::local {
namespace {

// Returns a job "mnist" in the namespace. Its only worker prints the words and fails.
std::string FailingJob(const std::string& name_space, const std::string& words) {
  return StrCat(R"(---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist, namespace: )",
                name_space, R"(}
spec:
  tfReplicaSpecs:
    Worker:
      restartPolicy: Never
      template:
        spec:
          containers:
            - {name: tensorflow, image: any, command: [sh, -c, "echo )",
                words, R"(; exit 1"]}
)");
}

int CountLines(const std::string& text, const std::string& line) {
  std::istringstream lines(text);
  int count = 0;
  for (std::string each; std::getline(lines, each);) count += each == line ? 1 : 0;
  return count;
}

class LocalRunTest : public ::testing::Test {
 protected:
  LocalRunTest() {
    ConfigureLogging(LogLevel::kError, LogFormat::kText);
    process_.state_dir = StrCat(::testing::TempDir(), "local_run_test.", getpid());
    process_.claims_dir = process_.state_dir + "/claims";
    process_.environment = {{"PATH", "/usr/bin:/bin"}};
  }
  ~LocalRunTest() override { std::filesystem::remove_all(process_.state_dir); }

  Workload Make(const std::string& manifest) {
    auto workload = MakeWorkload(manifest::CheckManifest(manifest, "jobs"), process_, "jobs");
    EXPECT_TRUE(workload.ok()) << workload.status();
    return workload.ok() ? *std::move(workload) : Workload();
  }
  // Runs the jobs and returns what was printed. The run must fail.
  std::string Fail(const Workload& workload, const RunOptions& options = {}) {
    std::istringstream in;
    std::ostringstream out, err;
    view::Console console{in, out, err};
    StopSource stop;
    const auto succeeded = RunWorkload(options, workload, process_, stop, console);
    EXPECT_TRUE(succeeded.ok()) << succeeded.status();
    EXPECT_FALSE(succeeded.value_or(true));
    return out.str();
  }

  process::RunnerOptions process_;
};

// Two jobs with the same name fail after printing different words. Each log must be printed once.
TEST_F(LocalRunTest, PrintsTheLogsOfTheFailedPodsOfEachJobOnce) {
  const std::string out = Fail(Make(FailingJob("red", "rose") + FailingJob("blue", "violet")));
  EXPECT_EQ(CountLines(out, "  rose"), 1) << out;
  EXPECT_EQ(CountLines(out, "  violet"), 1) << out;
}

// The store deletes the job, because its owner does not exist.
TEST_F(LocalRunTest, EndsWhenAJobIsDeleted) {
  Workload workload = Make(FailingJob("red", "rose"));
  auto owned = std::make_shared<Json>(*workload.jobs.at(0).object);
  (*owned)["metadata"]["ownerReferences"] = Json::array(
      {{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", "gone"}, {"uid", "gone"}}});
  workload.jobs[0].object = owned;
  const std::string out = Fail(workload);
  EXPECT_NE(out.find("mnist: deleted before it had ended\n"), std::string::npos) << out;
}

// If a state folder is used again, the logs continue in the same files. The run must not report the
// lines of earlier runs.
TEST_F(LocalRunTest, ReportsNothingOfEarlierRuns) {
  const std::string first = Fail(Make(FailingJob("red", "eval accuracy=0.5")));
  EXPECT_NE(first.find("mnist: test accuracy 0.5\n"), std::string::npos) << first;
  RunOptions options;
  const Workload again = Make(FailingJob("red", "rose"));
  const std::string second = Fail(again, options);
  EXPECT_EQ(second.find("accuracy"), std::string::npos) << second;
  options.follow = true;
  const std::string third = Fail(again, options);
  EXPECT_EQ(CountLines(third, "red.mnist-worker-0 | rose"), 1) << third;
}

}  // namespace
}  // namespace tfjob::local
