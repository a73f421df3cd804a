// Trains each example model for 20 steps, once in a single task and once with a parameter server.
// The loss must fall in both runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/base/file.h"
#include "tests/processes/job_run.h"
#include "tests/processes/model_examples.h"

namespace tfjob::processes {
namespace {

class ShortExamplesTest : public testing::TestWithParam<ModelExample> {
 protected:
  // Runs a manifest for a few steps, and returns the lines that all tasks have logged, in the order
  // of their times. Every step is logged.
  std::string Log(const std::string& manifest) const {
    auto job = JobRun::Start(Shortened(manifest), folder_ + "/run");
    EXPECT_EQ(job->AwaitEnd(120s), 0) << job->Output();
    std::vector<std::string> lines;
    for (const auto& pod : std::filesystem::directory_iterator(folder_ + "/run/state/logs")) {
      const std::string log = ReadFile((pod.path() / "tensorflow.log").string()).value_or("");
      for (const auto line : absl::StrSplit(log, '\n')) lines.emplace_back(line);
    }
    std::ranges::sort(lines);  // each line starts with its time
    return absl::StrJoin(lines, "\n");
  }

  static std::string Shortened(const std::string& manifest) {
    std::string text =
        std::regex_replace(manifest, std::regex("\n    epochs: \\d+"), "\n    max_steps: 20");
    // In 20 steps, neumf-small cannot learn anything about pairs of users and items that it has not
    // seen yet. Give it the same 256 examples ten times.
    if (GetParam().data == std::string_view("ratings")) {
      const std::string whole = "train: {format: npz, file: /data/train.npz";
      EXPECT_EQ(absl::StrReplaceAll({{whole, whole + ", take: 256"}}, &text), 1);
    }
    return std::regex_replace(text, std::regex("log_step_count_steps: \\d+"),
                              "log_step_count_steps: 1");
  }

  // Returns the losses of the steps that a task has logged.
  static std::vector<double> Losses(const std::string& output) {
    std::vector<double> losses;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(output, '\n'))) {
      const size_t place = line.find("loss=");
      if (place == std::string::npos || line.find("steps_per_s=") == std::string::npos) {
        continue;
      }
      losses.push_back(std::atof(line.c_str() + place + sizeof("loss=") - 1));
    }
    return losses;
  }

  // Expects the mean loss of the last quarter of the steps to be at least 2 % below that of the
  // first quarter.
  static void ExpectToFall(const std::string& output) {
    const std::vector<double> losses = Losses(output);
    ASSERT_GE(losses.size(), 4U) << output;
    const auto quarter = static_cast<std::ptrdiff_t>(losses.size() / 4);
    const double first = std::accumulate(losses.begin(), losses.begin() + quarter, 0.0);
    const double last = std::accumulate(losses.end() - quarter, losses.end(), 0.0);
    EXPECT_LT(last, 0.98 * first) << output;
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/short_examples_", GetParam().name);
};

TEST_P(ShortExamplesTest, OneTaskLearns) {
  ExpectToFall(Log(WithChiefOnly(ManifestIn(folder_, GetParam()))));
}

TEST_P(ShortExamplesTest, TasksWithAParameterServerLearn) {
  ExpectToFall(Log(ManifestIn(folder_, GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Models, ShortExamplesTest, testing::ValuesIn(ModelExamples()),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace tfjob::processes
