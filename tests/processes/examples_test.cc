// Runs every example. Changes only the folder and, if fewer steps are enough for the expected
// result, the number of steps. Each job must end as Succeeded with the expected result. Examples
// that take minutes belong to a suite whose name starts with Deep (see BUILD).
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/str_replace.h"
#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "tests/processes/job_run.h"
#include "tests/processes/model_examples.h"

namespace tfjob::processes {
namespace {

class ExamplesTest : public testing::Test {
 protected:
  using Replacements = std::vector<std::pair<std::string, std::string>>;

  std::unique_ptr<JobRun> Start(const std::string& example, const Replacements& replacements = {}) {
    const std::string name = std::filesystem::path(example).filename();
    folder_ = testing::TempDir() + "/examples_test_" + name;
    std::filesystem::remove_all(folder_);
    std::string manifest = *ReadFile(Runfile(StrCat("deploy/examples/", example, ".yaml")));
    manifest = WithModelFolder(manifest, name, folder_ + "/model");
    for (const auto& [from, to] : replacements) {
      EXPECT_EQ(absl::StrReplaceAll({{from, to}}, &manifest), 1) << from;
    }
    return JobRun::Start(manifest, folder_ + "/run");
  }

  double Scalar(const std::string& name) {
    StatusOr<std::optional<io::Checkpoint>> latest = io::LatestCheckpoint(folder_ + "/model");
    if (!latest.ok() || !*latest) return std::nan("");
    auto reader = io::BundleReader::Open((*latest)->prefix);
    StatusOr<Tensor> value = reader.ok() ? (*reader)->Read(name) : reader.status();
    return value.ok() && value->num_elements() == 1 ? static_cast<double>(value->data<float>()[0])
                                                    : std::nan("");
  }

  std::string folder_;
};

TEST_F(ExamplesTest, FashionMnistReachesItsAccuracyAndEveryTaskEnds) {
  auto job = Start("fashion-mnist",
                   {{"epochs: 25", "epochs: 12"}, {"decay_steps: 7500", "decay_steps: 3600"}});
  EXPECT_EQ(job->AwaitEnd(300s), 0) << job->Output();
  EXPECT_GE(LastAccuracy(job->Output()), 0.87) << job->Output();
  EXPECT_TRUE(job->Tasks().empty());
}

TEST_F(ExamplesTest, SynchronousFashionMnistReachesItsAccuracy) {
  auto job = Start("fashion-mnist-sync");
  EXPECT_EQ(job->AwaitEnd(300s), 0) << job->Output();
  EXPECT_GE(LastAccuracy(job->Output()), 0.87) << job->Output();
}

class DeepExamplesTest : public ExamplesTest {};

TEST_F(DeepExamplesTest, LinearRegressionFindsWeightAndBias) {
  auto job = Start("linear-regression");
  EXPECT_EQ(job->AwaitEnd(800s), 0) << job->Output();
  EXPECT_NEAR(Scalar("dense/kernel"), 2, 0.1) << job->Output();
  EXPECT_NEAR(Scalar("dense/bias"), 10, 0.1);
}

TEST_F(ExamplesTest, MnistReplicaSucceeds) {
  auto job = Start("mnist-replica");
  EXPECT_EQ(job->AwaitEnd(300s), 0) << job->Output();
}

TEST_F(ExamplesTest, LocalSucceeds) {
  auto job = Start("local");
  EXPECT_EQ(job->AwaitEnd(300s), 0) << job->Output();
}

TEST_F(ExamplesTest, SeveralDevicesReachTheAccuracy) {
  for (const std::string example : {"mirrored", "central-storage"}) {
    auto job = Start(example);
    EXPECT_EQ(job->AwaitEnd(300s), 0) << job->Output();
    EXPECT_GE(LastAccuracy(job->Output()), 0.87) << job->Output();
  }
}

TEST_F(ExamplesTest, TasksWithoutServersReachTheAccuracy) {
  for (const std::string example : {"multi-worker", "elastic"}) {
    auto job = Start(example);
    EXPECT_EQ(job->AwaitEnd(300s), 0) << job->Output();
    EXPECT_GE(LastAccuracy(job->Output()), 0.87) << job->Output();
  }
}

// Each model must reach the accuracy that its manifest promises, within the time that the manifest
// promises for two cores.
class ModelExamplesTest : public testing::TestWithParam<ModelExample> {
 protected:
  static void ExpectAccuracy(const std::string& manifest, const std::string& folder) {
    auto job = JobRun::Start(manifest, folder + "/run");
    EXPECT_EQ(job->AwaitEnd(GetParam().seconds * 1s), 0) << job->Output();
    EXPECT_GE(LastAccuracy(job->Output()), GetParam().accuracy) << job->Output();
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/examples_test_", GetParam().name);
};

TEST_P(ModelExamplesTest, ReachesItsAccuracyInOneTask) {
  ExpectAccuracy(WithChiefOnly(ManifestIn(folder_, GetParam())), folder_);
}

TEST_P(ModelExamplesTest, ReachesItsAccuracyWithAParameterServer) {
  ExpectAccuracy(ManifestIn(folder_, GetParam()), folder_);
}

INSTANTIATE_TEST_SUITE_P(Deep, ModelExamplesTest, testing::ValuesIn(ModelExamples()),
                         [](const auto& info) { return TestName(info.param); });

TEST_F(ExamplesTest, InterruptStopsEveryTask) {
  auto job = Start("fashion-mnist");
  ASSERT_TRUE(job->AwaitStep(50, 120s)) << job->Output();
  job->Signal(SIGINT);
  EXPECT_EQ(job->AwaitEnd(60s), 130) << job->Output();
  EXPECT_TRUE(job->Tasks().empty());
}

}  // namespace
}  // namespace tfjob::processes
