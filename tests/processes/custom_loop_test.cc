// Runs the example of a custom training loop in several tasks with `tfjob run`:
// deploy/examples/cpp/custom-loop.yaml.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "runtime/base/file.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

TEST(CustomLoop, RunsAsATFJob) {
  const std::string folder = testing::TempDir() + "/custom_loop";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder + "/model");
  std::string manifest = *ReadFile(Runfile("deploy/examples/cpp/custom-loop.yaml"));
  const std::string name = "  name: custom-loop-model\n";
  ASSERT_NE(manifest.find(name), std::string::npos);
  manifest.insert(manifest.find(name) + name.size(),
                  StrCat("  annotations: {tfjob.dev/local-path: ", folder, "/model}\n"));
  ASSERT_TRUE(WriteFileAtomically(folder + "/job.yaml", manifest).ok());
  Program run(
      Runfile("operator/cli/tfjob"),
      {"run", folder + "/job.yaml", "--follow", StrCat("--state-dir=", folder, "/state"), "--image",
       StrCat("example/custom-loop=",
              std::filesystem::absolute(Runfile("deploy/examples/cpp/custom-loop")).string())},
      {}, folder + "/run.log");
  EXPECT_EQ(run.AwaitEnd(120s), 0) << run.Output();
  EXPECT_NE(run.Output().find("epoch 20, step 420: loss"), std::string::npos) << run.Output();
  EXPECT_NE(run.Output().find("custom-loop: Succeeded"), std::string::npos) << run.Output();
}

}  // namespace
}  // namespace tfjob::processes
