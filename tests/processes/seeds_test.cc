// Checks that the quickstart reaches its promised accuracy with each of the seeds 0 to 9. The
// manifest sets no seed, so the quickstart itself uses the default, 0.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "absl/strings/str_replace.h"
#include "runtime/base/file.h"
#include "tests/processes/job_run.h"

namespace tfjob::processes {
namespace {

class SeedsTest : public testing::TestWithParam<int> {};

TEST_P(SeedsTest, TheQuickstartReachesItsAccuracy) {
  const std::string folder = StrCat(testing::TempDir(), "/seeds_test_", GetParam());
  std::filesystem::remove_all(folder);
  const std::string seed = StrCat("    seed: ", GetParam(), "\n");
  std::string manifest = *ReadFile(Runfile("deploy/examples/fashion-mnist.yaml"));
  manifest = absl::StrReplaceAll(WithModelFolder(manifest, "fashion-mnist", folder + "/model"),
                                 {{"    epochs:", seed + "    epochs:"}});
  ASSERT_NE(manifest.find("\n" + seed), std::string::npos) << manifest;
  auto job = JobRun::Start(manifest, folder + "/run");
  EXPECT_EQ(job->AwaitEnd(300s), 0) << job->Output();
  const double accuracy = LastAccuracy(job->Output());
  EXPECT_GE(accuracy, 0.88) << job->Output();
  std::cout << "seed " << GetParam() << ": test accuracy " << accuracy << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Ten, SeedsTest, testing::Range(0, 10));

}  // namespace
}  // namespace tfjob::processes
