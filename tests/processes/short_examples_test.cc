// Trains each example model for a few steps, once in a single task and once with a parameter
// server. The loss must fall in both runs.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/base/file.h"
#include "tests/processes/job_run.h"

namespace tfjob::processes {
namespace {

struct ShortExample {
  const char* name;
  const char* data;  // the data that make_data.py generates; "" for Fashion-MNIST
  int steps;
};

class ShortExamplesTest : public testing::TestWithParam<ShortExample> {
 protected:
  void SetUp() override {
    folder_ = StrCat(testing::TempDir(), "/short_examples_", GetParam().name);
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    if (GetParam().data[0] != 0) MakeData();
    manifest_ =
        Shortened(*ReadFile(Runfile(StrCat("deploy/examples/models/", GetParam().name, ".yaml"))));
  }

  void MakeData() {
    data_ = folder_ + "/data";
    const std::string make = StrCat("python3 ", Runfile("deploy/examples/models/make_data.py"), " ",
                                    GetParam().data, " ", data_);
    ASSERT_EQ(std::system(make.c_str()), 0) << make;
  }

  // Returns the manifest with the test's number of steps. Every step is logged.
  static std::string Shortened(const std::string& manifest) {
    std::string text = std::regex_replace(manifest, std::regex("\n    epochs: \\d+"),
                                          StrCat("\n    max_steps: ", GetParam().steps));
    return std::regex_replace(text, std::regex("log_step_count_steps: \\d+"),
                              "log_step_count_steps: 1");
  }

  // Writes the files of the manifest's ConfigMap to the test's folder, and replaces the container's
  // paths in them with those of the test.
  void WriteFiles() const {
    for (const YAML::Node& object : YAML::LoadAll(manifest_)) {
      if (object["kind"].as<std::string>() != "ConfigMap") continue;
      for (const auto& file : object["data"]) {
        const std::string text = absl::StrReplaceAll(file.second.as<std::string>(),
                                                     {{"/config/", folder_ + "/"},
                                                      {"/data/", data_ + "/"},
                                                      {": /model", StrCat(": ", folder_, "/one")}});
        ASSERT_TRUE(
            WriteFileAtomically(StrCat(folder_, "/", file.first.as<std::string>()), text).ok());
      }
    }
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

  std::string folder_;
  std::string data_ = "/usr/share/datasets/fashion-mnist";
  std::string manifest_;
};

TEST_P(ShortExamplesTest, OneTaskLearns) {
  WriteFiles();
  Program trainer(Runfile("runtime/cmd/tfjob-trainer"),
                  {StrCat("--config=", folder_, "/training.yaml")}, {}, folder_ + "/log");
  ASSERT_EQ(trainer.AwaitEnd(120s), 0) << trainer.Output();
  ExpectToFall(trainer.Output());
}

TEST_P(ShortExamplesTest, TasksWithAParameterServerLearn) {
  std::string manifest = WithModelFolder(manifest_, GetParam().name, folder_ + "/model");
  absl::StrReplaceAll(
      {{StrCat("local-path: /tmp/tfjob-", GetParam().data), "local-path: " + data_}}, &manifest);
  auto job = JobRun::Start(manifest, folder_ + "/run");
  ASSERT_EQ(job->AwaitEnd(120s), 0) << job->Output();
  // One task may take most of the steps, so merge the logs of all tasks. Each line starts with its
  // time.
  std::vector<std::string> lines;
  for (const auto& pod : std::filesystem::directory_iterator(folder_ + "/run/state/logs")) {
    const std::string log = ReadFile((pod.path() / "tensorflow.log").string()).value_or("");
    for (const auto line : absl::StrSplit(log, '\n')) lines.emplace_back(line);
  }
  std::ranges::sort(lines);
  ExpectToFall(absl::StrJoin(lines, "\n"));
}

INSTANTIATE_TEST_SUITE_P(Models, ShortExamplesTest,
                         testing::Values(ShortExample{"mnist-cnn", "", 20},
                                         ShortExample{"resnet-small", "", 20},
                                         ShortExample{"densenet-small", "", 20},
                                         // In 20 steps, the loss of neumf-small hardly changes.
                                         ShortExample{"neumf-small", "ratings", 400},
                                         ShortExample{"transformer-small", "dates", 20},
                                         ShortExample{"nmt-small", "dates", 20},
                                         ShortExample{"bert-small", "judgements", 20},
                                         ShortExample{"gpt2-small", "sentences", 20}),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param.name, {{"-", "_"}});
                         });

}  // namespace
}  // namespace tfjob::processes
