#include "runtime/train/step_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/trace/trace.h"
#include "runtime/train/test_job.h"
#include "tests/faults/faulty_files.h"

namespace tfjob::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(ParseProfiledStepsTest, AcceptsARangeOrAStep) {
  const StatusOr<ProfileOptions> range = ParseProfiledSteps("10..20");
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->first, 10);
  EXPECT_EQ(range->last, 20);
  const StatusOr<ProfileOptions> step = ParseProfiledSteps("7");
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->first, 7);
  EXPECT_EQ(step->last, 7);
}

TEST(ParseProfiledStepsTest, RefusesOtherTexts) {
  for (const char* text : {"", "..", "1..", "..2", "0..3", "-1..3", "5..4", "1..2..3", "1-2", "x",
                           "99999999999999999999"}) {
    const StatusOr<ProfileOptions> parsed = ParseProfiledSteps(text);
    ASSERT_TRUE(absl::IsInvalidArgument(parsed.status())) << text;
    EXPECT_THAT(Message(parsed.status()), HasSubstr(StrCat("got \"", text, "\"")));
  }
}

class StepProfileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  // Takes steps 1 to `last`. Each step records a span.
  static void TakeSteps(StepProfile& profile, int64_t last) {
    for (int64_t step = 0; step < last; ++step) {
      profile.BeforeStep(step);
      {
        const trace::Span span(trace::Category::kStep, StrCat("step ", step + 1));
      }
      profile.AfterStep(step + 1);
    }
  }
  // Returns the names of the complete events in a trace.
  static std::vector<std::string> Spans(const std::string& file) {
    const StatusOr<std::string> text = ReadFile(file);
    if (!text.ok()) return {StrCat(Message(text.status()))};
    const StatusOr<Json> json = ParseJson(*text, file);
    if (!json.ok()) return {StrCat(Message(json.status()))};
    std::vector<std::string> names;
    for (const Json& event : (*json)["traceEvents"]) {
      if (event["ph"] == "X") names.push_back(event["name"]);
    }
    return names;
  }

  const std::string folder_ = testing::TempDir() + "/profile";
  const std::string file_ = folder_ + "/new/trace.json";
};

TEST_F(StepProfileTest, WritesTheStepsOfTheRange) {
  {
    StepProfile profile({.first = 3, .last = 4, .file = file_}, "worker 0");
    TakeSteps(profile, 6);
    EXPECT_FALSE(trace::Recording());
  }
  EXPECT_THAT(Spans(file_), ElementsAre("step 3", "step 4"));
}

TEST_F(StepProfileTest, StartsLateIfTrainingContinuesWithinTheRange) {
  {
    StepProfile profile({.first = 3, .last = 9, .file = file_}, "worker 0");
    profile.BeforeStep(7);
    {
      const trace::Span span(trace::Category::kStep, "step 8");
    }
    profile.AfterStep(8);
    EXPECT_TRUE(trace::Recording());
    // With asynchronous updates, other tasks take steps, too.
    profile.BeforeStep(8);
    profile.AfterStep(11);
    EXPECT_FALSE(trace::Recording());
  }
  EXPECT_THAT(Spans(file_), ElementsAre("step 8"));
}

TEST_F(StepProfileTest, WritesWhatThereIsIfTheRunEndsEarly) {
  {
    StepProfile profile({.first = 2, .last = 9, .file = file_}, "worker 0");
    TakeSteps(profile, 3);
  }
  EXPECT_FALSE(trace::Recording());
  EXPECT_THAT(Spans(file_), ElementsAre("step 2", "step 3"));
}

TEST_F(StepProfileTest, RecordsNothingOutsideTheRange) {
  {
    StepProfile before({.first = 5, .last = 9, .file = file_}, "worker 0");
    TakeSteps(before, 3);
    StepProfile after({.first = 1, .last = 2, .file = file_}, "worker 0");
    after.BeforeStep(2);
    EXPECT_FALSE(trace::Recording());
    StepProfile none({}, "worker 0");
    TakeSteps(none, 3);
  }
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(StepProfileTest, GoesOnIfTheFileCannotBeWritten) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/new", "a file where a folder should be").ok());
  testing::internal::CaptureStderr();
  {
    StepProfile profile({.first = 1, .last = 1, .file = file_}, "worker 0");
    TakeSteps(profile, 2);
    EXPECT_FALSE(trace::Recording());
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the profile cannot be written; training goes on"));
}

TEST_F(StepProfileTest, StepsDoNotWaitForTheDisk) {
  faults::FaultyFiles files;
  files.Hang(true);
  {
    StepProfile profile({.first = 1, .last = 2, .file = file_}, "worker 0", files);
    TakeSteps(profile, 4);
    EXPECT_TRUE(files.AwaitHangingWrite());
    EXPECT_FALSE(std::filesystem::exists(file_));
    files.Hang(false);
  }
  EXPECT_THAT(Spans(file_), ElementsAre("step 1", "step 2"));
}

// Trains with the trainer, and reads its trace.
TEST_F(StepProfileTest, ATaskRecordsItsOpsBatchesAndCheckpoints) {
  const std::string model = R"({"class_name": "Sequential", "config": {"name": "m", "layers": [
    {"class_name": "Dense", "config": {"name": "dense", "units": 3, "batch_input_shape": [null, 4]}}
  ]}})";
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/model.json", model).ok());
  const std::string training =
      StrCat("model: {keras_json: ", folder_, "/model.json}\n",
             "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n"
             "optimizer: {name: sgd, learning_rate: 0.1}\n"
             "data: {train: {format: synthetic, examples: 64}}\n"
             "batch_size: 8\nmax_steps: 6\nsave_checkpoints_steps: 3\nmodel_dir: ",
             folder_, "/run\n");
  const auto config = config::ParseTrainingConfig(training, "training.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  RunningTask task(TaskOptions{.config = *config, .profile = {.first = 2, .last = 4}});
  ASSERT_EQ(task.End(), OkStatus());
  const std::vector<std::string> spans = Spans(folder_ + "/run/profile/worker-0.json");
  EXPECT_THAT(spans, IsSupersetOf({"step 2", "step 3", "step 4", "wait for a batch"}));
  EXPECT_THAT(spans, Not(Contains("step 1")));
  EXPECT_THAT(spans, Not(Contains("step 5")));
  EXPECT_THAT(spans, Contains(HasSubstr("dense/")).Times(testing::Ge(3)));
}

}  // namespace
}  // namespace tfjob::train
