// Tests the subcommands of tfjob-trainer: they can be stopped at any time, use the settings of the
// training file, and reject flags that do not apply to them. Also tests --selftest.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

class SubcommandsTest : public testing::Test {
 protected:
  // Writes a model that repeats its input a million times and predicts the mean, so that every
  // example takes a while.
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomically(Path("model.json"), R"({"class_name": "Sequential", "config": {
      "name": "s", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [null, 1], "name": "x"}},
        {"class_name": "RepeatVector", "config": {"n": 1048576, "name": "r"}},
        {"class_name": "GlobalAveragePooling1D", "config": {"name": "p"}}]}})")
                    .ok());
    ASSERT_TRUE(WriteFileAtomically(Path("y.csv"), "old").ok());
  }

  std::string Path(const std::string& name) const {
    return StrCat(testing::TempDir(), "/subcommands_", name);
  }
  std::unique_ptr<Program> Start(const std::vector<std::string>& arguments) const {
    return std::make_unique<Program>(Runfile("runtime/cmd/tfjob-trainer"), arguments,
                                     std::map<std::string, std::string>(), Path("log"));
  }
  std::unique_ptr<Program> Predict(const std::string& input) const {
    return Start({"predict", "--model", Path("model.json"), "--input", input, "--output",
                  Path("y.csv"), "--batch-size", "1", "--threads", "1"});
  }
};

TEST_F(SubcommandsTest, SelfTestSaysWhyThereIsNoGpu) {
  // Without a visible GPU, there is none that the program could use, whatever this machine has.
  Program test(Runfile("runtime/cmd/tfjob-trainer"), {"--selftest=cuda"},
               {{"CUDA_VISIBLE_DEVICES", ""}}, Path("log"));
  EXPECT_EQ(test.AwaitEnd(60s), 77);
  EXPECT_EQ(test.Output().rfind("no device: ", 0), 0U) << test.Output();
}

TEST_F(SubcommandsTest, SelfTestRefusesOtherNames) {
  const auto test = Start({"--selftest=tpu"});
  EXPECT_EQ(test->AwaitEnd(60s), 2);
  EXPECT_NE(test->Output().find("--selftest: expected cuda, or one family such as cuda/"),
            std::string::npos)
      << test->Output();
}

TEST_F(SubcommandsTest, PredictStopsBetweenBatches) {
  std::string rows;  // enough rows for minutes of prediction
  for (int i = 0; i < 200'000; ++i) rows += "1\n";
  ASSERT_TRUE(WriteFileAtomically(Path("x.csv"), rows).ok());
  const auto predict = Predict(Path("x.csv"));
  ASSERT_TRUE(predict->AwaitOutput("predicting", 60s)) << predict->Output();
  predict->Signal(SIGTERM);
  EXPECT_EQ(predict->AwaitEnd(60s), 128 + SIGTERM) << predict->Output();
  EXPECT_EQ(predict->Output().find("exiting at once"), std::string::npos) << predict->Output();
  EXPECT_EQ(*ReadFile(Path("y.csv")), "old");
}

TEST_F(SubcommandsTest, ASubcommandThatWaitsForAFileStops) {
  const std::string input = Path("pipe.csv");
  unlink(input.c_str());
  ASSERT_EQ(mkfifo(input.c_str(), 0600), 0);
  const auto predict = Predict(input);
  int writer = -1;  // the pipe has no reader until the program opens it
  while ((writer = open(input.c_str(), O_WRONLY | O_NONBLOCK)) < 0 && !predict->Ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_GE(writer, 0) << predict->Output();
  predict->Signal(SIGINT);
  EXPECT_EQ(predict->AwaitEnd(60s), 128 + SIGINT) << predict->Output();
  close(writer);
  EXPECT_EQ(*ReadFile(Path("y.csv")), "old");
}

TEST_F(SubcommandsTest, PredictScalesInputsAsTheTrainingFileDoes) {
  ASSERT_TRUE(WriteFileAtomically(Path("training.yaml"), R"(
model: {layers: [InputLayer: {batch_shape: [null, 2]}, ReLU: {}]}
loss: mean_squared_error
epochs: 1
data: {train: {format: csv, file: unused.csv, scale: 1/4}}
)")
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(Path("two.csv"), "1,2\n-1,8\n").ok());
  const auto predict = Start({"predict", "--model", Path("training.yaml"), "--input",
                              Path("two.csv"), "--output", Path("y.csv")});
  EXPECT_EQ(predict->AwaitEnd(60s), 0) << predict->Output();
  EXPECT_EQ(*ReadFile(Path("y.csv")), "0.25,0.5\n0,2\n");
}

TEST_F(SubcommandsTest, PredictScalesInputsAsTheDatasetsOfTraining) {
  const auto predict = [&](const std::string& second) {
    const std::string file =
        StrCat("model: {layers: [InputLayer: {batch_shape: [null, 2]}, ReLU: {}]}\n",
               "loss: mean_squared_error\nepochs: 1\n",
               "data: {train: {format: concatenate, scale: 1/2, datasets: [{format: csv, ",
               "file: a.csv, scale: 1/4}, {format: csv, file: b.csv, scale: ", second, "}]}}\n");
    EXPECT_TRUE(WriteFileAtomically(Path("training.yaml"), file).ok());
    const auto program = Start({"predict", "--model", Path("training.yaml"), "--input",
                                Path("two.csv"), "--output", Path("y.csv")});
    const int code = program->AwaitEnd(60s);
    return std::pair(code, program->Output());
  };
  ASSERT_TRUE(WriteFileAtomically(Path("two.csv"), "8,16\n-1,64\n").ok());
  EXPECT_EQ(predict("1/4").first, 0);
  EXPECT_EQ(*ReadFile(Path("y.csv")), "1,2\n0,8\n");
  const auto [code, output] = predict("1");
  EXPECT_EQ(code, 2);
  EXPECT_NE(output.find("data.train.datasets[0] has the scale 0.25 and data.train.datasets[1] has "
                        "1"),
            std::string::npos)
      << output;
}

TEST_F(SubcommandsTest, SummaryOfAZipWithoutInputsIsAnError) {
  ASSERT_TRUE(WriteFileAtomically(Path("y.jsonl"), "{\"y\": 1}\n").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("w.jsonl"), "{\"w\": 1}\n").ok());
  const auto dataset = [&](const std::string& name, const std::string& use) {
    return StrCat("{format: jsonl, files: [", Path(name + ".jsonl"), "], features: {\"", name,
                  "\": {dtype: float32, shape: []}}, ", use, ": \"", name, "\"}");
  };
  ASSERT_TRUE(WriteFileAtomically(
                  Path("zip.yaml"),
                  StrCat("model: {layers: [Dense: {units: 1}]}\nloss: mean_squared_error\n",
                         "epochs: 1\ndata: {train: {format: zip, datasets: [",
                         dataset("y", "targets"), ", ", dataset("w", "sample_weights"), "]}}\n"))
                  .ok());
  const auto summary = Start({"summary", "--model", Path("zip.yaml")});
  EXPECT_EQ(summary->AwaitEnd(60s), 2) << summary->Output();
  EXPECT_NE(summary->Output().find("the data provide no features"), std::string::npos)
      << summary->Output();
}

TEST_F(SubcommandsTest, FlagsOfTrainingAreRefused) {
  for (const std::string flag : {"--config=job.yaml", "--set=batch_size=1", "--print=model"}) {
    const auto summary = Start({flag, "summary", "--model", Path("model.json")});
    EXPECT_EQ(summary->AwaitEnd(60s), 2) << summary->Output();
    EXPECT_NE(summary->Output().find("the flags of summary follow its name"), std::string::npos)
        << summary->Output();
  }
  EXPECT_EQ(Start({"--log-level=warning", "summary", "--model", Path("model.json")})->AwaitEnd(60s),
            0);
}

TEST_F(SubcommandsTest, DataVerifyFailsIfAFileIsDamaged) {
  ASSERT_TRUE(WriteFileAtomically(Path("good.jsonl"), "{\"x\": 1}\n").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("bad.jsonl"), "{\"x\": 1}\n{\n").ok());
  const auto run = [&](const std::vector<std::string>& arguments) {
    const auto program = Start(arguments);
    const int code = program->AwaitEnd(60s);
    return std::pair(code, program->Output());
  };
  EXPECT_EQ(run({"data", "verify", Path("good.jsonl")}),
            std::pair(0, Path("good.jsonl") + ": JSON lines, 1 example, no damage\n"));
  const auto [code, output] = run({"data", "verify", Path("good.jsonl"), Path("bad.jsonl")});
  EXPECT_EQ(code, 1) << output;
  EXPECT_NE(output.find(Path("good.jsonl") + ": JSON lines, 1 example, no damage\n"),
            std::string::npos)
      << output;
  EXPECT_NE(output.find(Path("bad.jsonl") + ": JSON lines, 1 example, 1 damaged place\ndamaged:\n"),
            std::string::npos)
      << output;
  EXPECT_NE(output.find("damaged files: 1 of 2"), std::string::npos) << output;

  const auto inspected = run({"data", "inspect", Path("bad.jsonl")});
  EXPECT_EQ(inspected.first, 0) << inspected.second;
  EXPECT_NE(inspected.second.find("\n  x: number, in 1 example, always 1\n"), std::string::npos)
      << inspected.second;
  // Damage is reported even if another file cannot be read, whichever file comes first.
  ASSERT_TRUE(WriteFileAtomically(Path("README"), "some text\n").ok());
  for (const std::string& other : {Path("none.jsonl"), Path("README")}) {
    for (const auto& files :
         {std::pair(other, Path("bad.jsonl")), std::pair(Path("bad.jsonl"), other)}) {
      const auto mixed = run({"data", "verify", files.first, files.second});
      EXPECT_EQ(mixed.first, 1) << mixed.second;
      EXPECT_NE(mixed.second.find("damaged files: 1 of 2; files that could not be read: 1"),
                std::string::npos)
          << mixed.second;
    }
  }
  EXPECT_EQ(run({"data", "verify", Path("README")}).first, 2);
  EXPECT_EQ(run({"data", "verify", Path("none.jsonl")}).first, 1);
  EXPECT_EQ(run({"data", "verify"}).first, 2);
  EXPECT_EQ(run({"data"}).first, 2);
  EXPECT_EQ(run({"data", "verify", "--format", "xml", Path("good.jsonl")}).first, 2);
}

}  // namespace
}  // namespace tfjob::processes
