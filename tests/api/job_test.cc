// Runs jobs as processes on this machine. Each task runs a program that uses the C++ API.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

// Runs deploy/examples/cpp/estimator.cc in each task of a job.
class EstimatorJob {
 public:
  EstimatorJob(const std::vector<std::string>& types, const std::string& name)
      : folder_(testing::TempDir() + "/" + name) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::string cluster;
    for (const std::string& type : types) {
      cluster +=
          StrCat(cluster.empty() ? "" : ",", "\"", type, "\":[\"", wire::TestAddress(), "\"]");
    }
    for (const std::string& type : types) {
      const std::string tf_config =
          StrCat("{\"cluster\":{", cluster, "},\"task\":{\"type\":\"", type, "\",\"index\":0}}");
      programs_.emplace_back(
          type,
          std::make_unique<Program>(
              Runfile("tests/api/estimator"), std::vector<std::string>{folder_ + "/model"},
              std::map<std::string, std::string>{{"TF_CONFIG", tf_config}, {"TFJOB_UID", "job"}},
              folder_ + "/" + type + ".log"));
    }
  }

  Program& operator[](const std::string& type) {
    for (auto& [own, program] : programs_) {
      if (own == type) return *program;
    }
    ADD_FAILURE() << type;
    return *programs_.front().second;
  }
  const std::string& folder() const { return folder_; }

 private:
  const std::string folder_;
  std::vector<std::pair<std::string, std::unique_ptr<Program>>> programs_;
};

TEST(EstimatorProgram, EveryTaskOfAJobEndsWithZero) {
  const std::vector<std::string> types = {"chief", "worker", "ps", "evaluator"};
  EstimatorJob job(types, "four_tasks");
  for (const std::string& type : types)
    EXPECT_EQ(job[type].AwaitEnd(120s), 0) << type << "\n" << job[type].Output();
  EXPECT_NE(job["chief"].Output().find("the end: "), std::string::npos);
  const std::string served = job["ps"].Output();
  EXPECT_NE(served.find("the job has ended: /job:ps/task:0 has served variables"),
            std::string::npos)
      << served;
  EXPECT_EQ(served.find("the end: "), std::string::npos);
  EXPECT_NE(job["evaluator"].Output().find("has evaluated checkpoints"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(job.folder() + "/model/eval/finished.json"));
}

TEST(EstimatorProgram, WithoutAnEvaluatorTheChiefReportsTheLoss) {
  EstimatorJob job({"chief", "ps"}, "two_tasks");
  EXPECT_EQ(job["chief"].AwaitEnd(120s), 0) << job["chief"].Output();
  EXPECT_EQ(job["ps"].AwaitEnd(60s), 0) << job["ps"].Output();
  const std::string output = job["chief"].Output();
  const size_t at = output.find("the end: loss=");
  ASSERT_NE(at, std::string::npos) << output;
  EXPECT_LT(std::stod(output.substr(at + 14)), 1e-3) << output;
  EXPECT_NE(output.find("global_step=2000"), std::string::npos) << output;
}

TEST(EstimatorProgram, AServerThatIsAskedToStopSaysSo) {
  EstimatorJob job({"chief", "ps"}, "stopped");
  job["chief"].Signal(SIGKILL);
  ASSERT_TRUE(job["ps"].AwaitOutput("serving", 60s)) << job["ps"].Output();
  job["ps"].Signal(SIGTERM);
  EXPECT_EQ(job["ps"].AwaitEnd(60s), 128 + SIGTERM) << job["ps"].Output();
}

}  // namespace
}  // namespace tfjob::processes
