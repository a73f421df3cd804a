// Runs a program whose callback changes the learning rate as the tasks of a job, and replaces tasks
// while they train.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

// Returns the weights that the program has printed.
std::vector<double> Weights(const std::string& output) {
  constexpr char kBegin[] = "trained 54 steps:";
  const size_t at = output.find(kBegin);
  EXPECT_NE(at, std::string::npos) << output;
  if (at == std::string::npos) return {};
  std::istringstream numbers(output.substr(at + sizeof(kBegin) - 1));
  std::vector<double> weights;
  for (double weight = 0; numbers >> weight;) weights.push_back(weight);
  return weights;
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
}

struct TaskOfJob {
  std::string type;
  int index = 0;
};

class RateJobTest : public testing::Test {
 protected:
  RateJobTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  // Sets the tasks of the next job.
  void SetTasks(const std::map<std::string, int>& counts) {
    cluster_ = "{\"cluster\":{";
    for (const auto& [type, count] : counts) {
      cluster_ += StrCat(cluster_.ends_with("{") ? "" : ",", "\"", type, "\":[");
      for (int i = 0; i < count; ++i)
        cluster_ += StrCat(i == 0 ? "" : ",", "\"", wire::TestAddress(), "\"");
      cluster_ += "]";
    }
    cluster_ += "},\"task\":{\"type\":\"";
  }
  std::unique_ptr<Program> Start(const TaskOfJob& task, std::vector<std::string> arguments = {}) {
    std::map<std::string, std::string> environment = {{"TFJOB_UID", "job"}};
    if (!task.type.empty())
      environment["TF_CONFIG"] = StrCat(cluster_, task.type, "\",\"index\":", task.index, "}}");
    return std::make_unique<Program>(Runfile("tests/api/rate_fit"), std::move(arguments),
                                     environment, StrCat(folder_, "/log-", ++started_));
  }
  std::vector<double> Alone() {
    const auto alone = Start({});
    EXPECT_EQ(alone->AwaitEnd(120s), 0) << alone->Output();
    return Weights(alone->Output());
  }

  const std::string folder_ = testing::TempDir() + "/rate_job";

 private:
  std::string cluster_;
  int started_ = 0;
};

// Step 20 is within an epoch. After step 18, the other tasks have set the rate of the next epoch,
// but the task that is lost has not.
TEST_F(RateJobTest, AReplacedTaskOfAGroupTrainsWithTheRateOfTheOthers) {
  const std::vector<double> alone = Alone();
  const std::vector<TaskOfJob> tasks = {{"chief", 0}, {"worker", 0}};
  std::vector<double> undisturbed;
  for (const int lost : {-1, 0, 1}) {
    for (const int64_t step : {18, 20}) {
      if (lost < 0 && step == 20) continue;
      SetTasks({{"chief", 1}, {"worker", 1}});
      std::vector<std::unique_ptr<Program>> running;
      for (int i = 0; i < 2; ++i) {
        std::vector<std::string> arguments;
        if (i == lost) arguments = {"--pause-at", StrCat(step), folder_ + "/never"};
        running.push_back(Start(tasks[static_cast<size_t>(i)], arguments));
      }
      if (lost >= 0) {
        auto& task = running[static_cast<size_t>(lost)];
        ASSERT_TRUE(task->AwaitOutput("paused", 120s)) << task->Output();
        task->Signal(SIGKILL);
        EXPECT_EQ(task->AwaitEnd(60s), 128 + SIGKILL);
        task = Start(tasks[static_cast<size_t>(lost)]);
      }
      for (const auto& task : running) {
        ASSERT_EQ(task->AwaitEnd(120s), 0) << task->Output();
        const std::vector<double> weights = Weights(task->Output());
        if (undisturbed.empty()) undisturbed = weights;
        EXPECT_EQ(weights, undisturbed) << "lost " << lost << " after step " << step;
      }
    }
  }
  ExpectNear(undisturbed, alone);
}

// The chief is held up after step 20, so the servers go back to the checkpoint of step 16.
TEST_F(RateJobTest, AReplacedServerUpdatesWithTheRateOfTheCheckpoint) {
  const std::vector<double> alone = Alone();
  SetTasks({{"chief", 1}, {"worker", 1}, {"ps", 2}});
  const std::string go = folder_ + "/go", backup = folder_ + "/backup";
  const auto chief = Start({"chief", 0}, {"--sync", "--pause-at", "20", go, "--backup", backup});
  const auto worker = Start({"worker", 0}, {"--sync", "--backup", backup});
  const auto first = Start({"ps", 0}, {"--sync", "--backup", backup});
  auto second = Start({"ps", 1}, {"--sync", "--backup", backup});
  ASSERT_TRUE(chief->AwaitOutput("paused", 120s)) << chief->Output();
  second->Signal(SIGKILL);
  EXPECT_EQ(second->AwaitEnd(60s), 128 + SIGKILL);
  second = Start({"ps", 1}, {"--sync", "--backup", backup});
  std::ofstream(go).close();
  ASSERT_EQ(chief->AwaitEnd(120s), 0) << chief->Output();
  ExpectNear(Weights(chief->Output()), alone);
  EXPECT_EQ(worker->AwaitEnd(60s), 0) << worker->Output();
  EXPECT_EQ(first->AwaitEnd(60s), 0) << first->Output();
  EXPECT_EQ(second->AwaitEnd(60s), 0) << second->Output();
}

}  // namespace
}  // namespace tfjob::processes
