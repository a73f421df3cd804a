#include "operator/local/run/local_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
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

// Two jobs with the same name fail after printing different words. Each log must be printed once.
TEST(LocalRun, PrintsTheLogsOfTheFailedPodsOfEachJobOnce) {
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  process::RunnerOptions process;
  process.state_dir = StrCat(::testing::TempDir(), "local_run_test.", getpid());
  process.claims_dir = process.state_dir + "/claims";
  process.environment = {{"PATH", "/usr/bin:/bin"}};
  const std::string manifest = FailingJob("red", "rose") + FailingJob("blue", "violet");
  const auto workload = MakeWorkload(manifest::CheckManifest(manifest, "jobs"), process, "jobs");
  ASSERT_TRUE(workload.ok()) << workload.status();
  std::istringstream in;
  std::ostringstream out, err;
  view::Console console{in, out, err};
  StopSource stop;
  const auto succeeded = RunWorkload(RunOptions(), *workload, process, stop, console);
  ASSERT_TRUE(succeeded.ok()) << succeeded.status();
  EXPECT_FALSE(*succeeded);
  EXPECT_EQ(CountLines(out.str(), "  rose"), 1) << out.str();
  EXPECT_EQ(CountLines(out.str(), "  violet"), 1) << out.str();
  std::filesystem::remove_all(process.state_dir);
}

}  // namespace
}  // namespace tfjob::local
