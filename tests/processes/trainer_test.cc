// Runs tfjob-trainer as a process. Tests the exit codes, the files that a run leaves for the next
// run, and the handling of invalid input.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/npz.h"
#include "runtime/rpc/server.h"
#include "runtime/tensor/tensor.h"
#include "runtime/train/model_dir/run_mark.h"
#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }
  // Starts a run with a single task that learns the line y = 2x + 10.
  Program Start(int64_t max_steps, std::map<std::string, std::string> environment = {}) {
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 0.1}
data:
  train: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, low: -1.0, high: 1.0, examples: 64}
batch_size: 8
threads: 1
save_checkpoints_steps: 1000000000
log_step_count_steps: 1000
max_steps: )",
                                    max_steps, "\nmodel_dir: ", folder_, "/model\n");
    return Launch(text, std::move(environment));
  }
  // Runs the trainer with `text` as its training file.
  Program Launch(const std::string& text, std::map<std::string, std::string> environment = {}) {
    const std::string file = folder_ + "/training.yaml";
    EXPECT_TRUE(WriteFileAtomically(file, text).ok());
    return Program(Runfile("runtime/cmd/tfjob-trainer"), {StrCat("--config=", file)}, environment,
                   StrCat(folder_, "/log", ++runs_));
  }
  int64_t LastCheckpoint() const {
    auto latest = io::LatestCheckpoint(folder_ + "/model");
    return latest.ok() && *latest ? (*latest)->step : -1;
  }
  std::optional<int64_t> Finished() const {
    auto step = train::FinishedStep(folder_ + "/model", {"", 0});
    return step.ok() ? *step : std::nullopt;
  }

  // Returns the contents of all files in model_dir, by path.
  std::map<std::string, std::string> ModelFiles() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/model")) {
      const std::string path = entry.path().string();
      if (entry.is_regular_file()) files[path] = ReadFile(path).value_or("unreadable");
    }
    return files;
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/trainer_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  int runs_ = 0;
};

TEST_F(TrainerTest, SigtermSavesAndEndsWith143AndTheNextRunGoesOn) {
  Program first = Start(1'000'000'000);
  ASSERT_TRUE(first.AwaitOutput("step step=", 60s)) << first.Output();
  first.Signal(SIGTERM);
  EXPECT_EQ(first.AwaitEnd(60s), 143) << first.Output();
  const int64_t saved = LastCheckpoint();
  ASSERT_GE(saved, 1000) << first.Output();
  EXPECT_EQ(Finished(), std::nullopt);

  Program second = Start(saved + 100);
  EXPECT_EQ(second.AwaitEnd(60s), 0) << second.Output();
  EXPECT_NE(second.Output().find(
                StrCat("restored a checkpoint model_dir=", folder_, "/model step=", saved)),
            std::string::npos)
      << second.Output();
  EXPECT_EQ(LastCheckpoint(), saved + 100);
  EXPECT_EQ(Finished(), saved + 100);

  Program third = Start(saved + 100);
  EXPECT_EQ(third.AwaitEnd(60s), 0) << third.Output();
  EXPECT_EQ(LastCheckpoint(), saved + 100) << third.Output();
  EXPECT_EQ(Finished(), saved + 100);
}

std::vector<std::string> ErrorLines(const std::string& output) {
  std::vector<std::string> lines;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line);) {
    if (line.find(" ERROR ") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

TEST_F(TrainerTest, ATakenPortIsNamedAndEndsWithACodeThatARetryMayCure) {
  EXPECT_EQ(Start(10).AwaitEnd(60s), 0);
  const auto before = ModelFiles();
  auto holder = *rpc::Server::Start({.host = "127.0.0.1"});
  const std::string address = StrCat("127.0.0.1:", holder->port());
  Program trainer =
      Start(20, {{"TF_CONFIG", StrCat(R"({"cluster":{"worker":[")", address,
                                      R"("]},"task":{"type":"worker","index":0}})")}});
  EXPECT_EQ(trainer.AwaitEnd(60s), 138);
  EXPECT_NE(trainer.Output().find(address + ": the port is taken by another process"),
            std::string::npos)
      << trainer.Output();
  EXPECT_EQ(ErrorLines(trainer.Output()).size(), 1u) << trainer.Output();
  EXPECT_TRUE(ModelFiles() == before) << "the folder of the run before has changed";
  EXPECT_EQ(Finished(), 10);
}

// The error that a task fails with must also be its termination message, which Kubernetes shows.
TEST_F(TrainerTest, TheLastErrorIsTheTerminationMessage) {
  const std::string file = folder_ + "/termination-log";
  ASSERT_TRUE(WriteFileAtomically(file, "").ok());
  EXPECT_EQ(Start(10, {{"TFJOB_TERMINATION_LOG", file}}).AwaitEnd(60s), 0);
  EXPECT_EQ(*ReadFile(file), "");
  Program trainer = Launch("strategy: sinc\n", {{"TFJOB_TERMINATION_LOG", file}});
  EXPECT_EQ(trainer.AwaitEnd(60s), 2) << trainer.Output();
  const std::string message = *ReadFile(file);
  EXPECT_TRUE(message.starts_with(folder_ + "/training.yaml: ")) << message;
  EXPECT_NE(message.find("strategy"), std::string::npos) << message;
  Program bad_flag(Runfile("runtime/cmd/tfjob-trainer"), {"--confg=x"},
                   {{"TFJOB_TERMINATION_LOG", file}}, folder_ + "/log");
  EXPECT_EQ(bad_flag.AwaitEnd(60s), 2) << bad_flag.Output();
  EXPECT_NE(ReadFile(file)->find("--confg=x"), std::string::npos) << *ReadFile(file);
}

TEST_F(TrainerTest, TheKeyIsErasedFromTheEnvironmentAndNeverShown) {
  const std::string key(64, '5');
  const std::string worker = StrCat(R"({"cluster":{"worker":[")", wire::TestAddress(),
                                    R"("]},"task":{"type":"worker","index":0}})");
  Program trainer = Start(1'000'000'000, {{"TFJOB_KEY", key}, {"TF_CONFIG", worker}});
  ASSERT_TRUE(trainer.AwaitOutput("step step=", 60s)) << trainer.Output();
  EXPECT_EQ(ReadFile(StrCat("/proc/", trainer.pid(), "/environ"))->find(key), std::string::npos);
  trainer.Signal(SIGKILL);
  trainer.AwaitEnd(60s);
  EXPECT_EQ(trainer.Output().find(key), std::string::npos) << trainer.Output();
  EXPECT_EQ(trainer.Output().find("TFJOB_KEY is not set"), std::string::npos) << trainer.Output();

  Program without = Start(10, {{"TF_CONFIG", worker}});
  EXPECT_EQ(without.AwaitEnd(60s), 0) << without.Output();
  EXPECT_NE(without.Output().find("WARNING train TFJOB_KEY is not set"), std::string::npos)
      << without.Output();
  Program bad = Start(10, {{"TFJOB_KEY", "5555"}});
  EXPECT_EQ(bad.AwaitEnd(60s), 2);
  EXPECT_NE(bad.Output().find("TFJOB_KEY: expected 64 hexadecimal digits, got 4 characters"),
            std::string::npos)
      << bad.Output();
}

TEST_F(TrainerTest, NumbersThatAreNotFiniteEndTheRunAlsoForTheNextProcess) {
  const std::string message = folder_ + "/termination-log";
  const auto run = [&](const char* attempt, const char* more) {
    EXPECT_TRUE(WriteFileAtomically(message, "").ok());
    return Launch(
        StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 1.0e30}
data: {train: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, examples: 64}}
batch_size: 8
threads: 1
max_steps: 100
model_dir: )",
               folder_, "/model\n", more),
        {{"TFJOB_TERMINATION_LOG", message}, {"TFJOB_UID", "uid"}, {"TFJOB_ATTEMPT", attempt}});
  };
  Program first = run("1", "");
  EXPECT_EQ(first.AwaitEnd(60s), 1) << first.Output();
  const std::string words = *ReadFile(message);
  EXPECT_TRUE(words.starts_with("step 2: the loss is infinite: lower optimizer.learning_rate"))
      << words;
  const int64_t saved = LastCheckpoint();
  EXPECT_EQ(saved, 0) << "damaged variables must not be saved";

  Program again = run("1", "");
  EXPECT_EQ(again.AwaitEnd(60s), 1) << again.Output();
  EXPECT_EQ(*ReadFile(message), words);
  EXPECT_EQ(again.Output().find("from_step="), std::string::npos) << again.Output();

  Program next_attempt = run("2", "on_non_finite: continue\n");
  EXPECT_EQ(next_attempt.AwaitEnd(60s), 0) << next_attempt.Output();
}

TEST_F(TrainerTest, BadInputEndsWithTwo) {
  Program trainer = Start(10, {{"TF_CONFIG", "{"}});
  EXPECT_EQ(trainer.AwaitEnd(60s), 2) << trainer.Output();
}

// Describes a run with ten examples of three classes. The default values are valid; each test case
// changes some of them. The strings for images and labels are file names.
struct BadInput {
  const char* name = "";
  std::string train_images = "images", train_labels = "labels";
  std::string eval_images = "images", eval_labels = "labels";
  std::string layer = "Flatten:";  // the layer before the last
  int units = 3;                   // units of the last layer
  int code = 2;
  std::string culprit;  // text that the error line must contain
};

void PrintTo(const BadInput& input, std::ostream* out) {
  *out << input.name;
}

// Returns unsigned bytes in the IDX format. The value of each byte is its index modulo `modulus`,
// except that the last byte is `last`.
std::string Idx(const std::vector<uint32_t>& dimensions, size_t modulus, char last) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  size_t size = 1;
  for (uint32_t dimension : dimensions) {
    for (int shift : {24, 16, 8, 0}) text += static_cast<char>(dimension >> shift & 0xff);
    size *= dimension;
  }
  for (size_t i = 0; i < size; ++i) text += i + 1 < size ? static_cast<char>(i % modulus) : last;
  return text;
}

class BadInputTest : public TrainerTest, public testing::WithParamInterface<BadInput> {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    const std::map<std::string, std::string> files = {
        {"images", Idx({10, 2, 2}, 4, 0)},
        {"labels", Idx({10}, 3, 0)},
        {"wide", Idx({10, 3, 2}, 4, 0)},
        {"empty", Idx({0, 2, 2}, 4, 0)},
        {"label7", Idx({10}, 3, 7)},
        {"magic", "PK\x03\x04 an archive"},
        // A file that consists only of a gzip header.
        {"truncated.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10)}};
    for (const auto& [name, content] : files)
      ASSERT_TRUE(WriteFileAtomically(StrCat(folder_, "/", name), content).ok());
  }

  std::string Source(const std::string& images, const std::string& labels) const {
    return StrCat("{format: idx, images: ", folder_, "/", images, ", labels: ", folder_, "/",
                  labels, "}\n");
  }
  Program Train(const BadInput& input, int64_t max_steps) {
    return Launch(StrCat(
        "model:\n  layers:\n    - ", input.layer, "\n    - Dense: {units: ", input.units, "}\n",
        "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n",
        "optimizer: {name: sgd, learning_rate: 0.1}\n",
        "data:\n  train: ", Source(input.train_images, input.train_labels),
        "  eval: ", Source(input.eval_images, input.eval_labels),
        "batch_size: 5\nthreads: 1\nmax_steps: ", max_steps, "\nmodel_dir: ", folder_, "/model\n"));
  }
};

TEST_P(BadInputTest, IsRefusedBeforeAnythingIsTrainedOrWritten) {
  Program good = Train({}, 3);
  ASSERT_EQ(good.AwaitEnd(60s), 0) << good.Output();
  ASSERT_EQ(Finished(), 3);
  const auto before = ModelFiles();

  Program bad = Train(GetParam(), 6);
  EXPECT_EQ(bad.AwaitEnd(60s), GetParam().code) << bad.Output();
  const std::vector<std::string> errors = ErrorLines(bad.Output());
  ASSERT_EQ(errors.size(), 1u) << bad.Output();
  EXPECT_NE(errors[0].find(GetParam().culprit), std::string::npos) << errors[0];
  EXPECT_EQ(bad.Output().find("from_step="), std::string::npos) << bad.Output();
  EXPECT_TRUE(ModelFiles() == before) << "the folder of the run before has changed";
}

INSTANTIATE_TEST_SUITE_P(
    , BadInputTest,
    testing::Values(
        BadInput{.name = "NoSuchFile", .train_images = "gone", .code = 1, .culprit = "/gone: "},
        BadInput{.name = "TruncatedGz",
                 .train_images = "truncated.gz",
                 .code = 1,
                 .culprit = "truncated.gz: the gzip data ends early"},
        BadInput{
            .name = "WrongMagic", .train_labels = "magic", .culprit = "/magic: not an IDX file"},
        BadInput{.name = "ZeroRows", .train_images = "empty", .culprit = "/empty: the file has"},
        BadInput{.name = "LabelOutOfRange",
                 .train_labels = "label7",
                 .culprit = "label 7 is out of range"},
        BadInput{.name = "LayersThatDoNotFit",
                 .layer = "Reshape: {target_shape: [3]}",
                 .culprit = "layer reshape (Reshape)"},
        BadInput{.name = "CheckpointOfAnotherModel",
                 .units = 4,
                 .culprit = "dense/kernel is float32[4,3], but the model has float32[4,4]"},
        BadInput{.name = "EvaluationTruncatedGz",
                 .eval_labels = "truncated.gz",
                 .code = 1,
                 .culprit = "truncated.gz: the gzip data ends early"},
        BadInput{.name = "EvaluationLabelOutOfRange",
                 .eval_labels = "label7",
                 .culprit = "label 7 is out of range"},
        BadInput{.name = "EvaluationOfAnotherShape",
                 .eval_images = "wide",
                 .culprit = "data.eval: its examples have the shape [3,2]"}),
    [](const testing::TestParamInfo<BadInput>& info) { return std::string(info.param.name); });

// Describes a run that reads an array `x` and an array `y` from an NPZ file.
struct BadArrays {
  const char* name = "";
  std::string layers;
  Tensor x, y;
  std::string culprit;  // text that the error line must contain
};

void PrintTo(const BadArrays& arrays, std::ostream* out) {
  *out << arrays.name;
}

class BadArraysTest : public TrainerTest, public testing::WithParamInterface<BadArrays> {};

TEST_P(BadArraysTest, EndWithTwoAndTheValueIsNamed) {
  const std::string file = folder_ + "/train.npz";
  const std::pair<std::string, Tensor> arrays[] = {{"x", GetParam().x}, {"y", GetParam().y}};
  ASSERT_EQ(io::WriteNpz(file, arrays), OkStatus());
  Program trainer =
      Launch(StrCat("model:\n  layers: [", GetParam().layers, "]\n", "loss: mean_squared_error\n",
                    "optimizer: {name: sgd, learning_rate: 0.1}\n",
                    "data: {shuffle: false, train: {format: npz, file: ", file, "}}\n",
                    "batch_size: 4\nthreads: 1\nmax_steps: 3\nmodel_dir: ", folder_, "/model\n"));
  EXPECT_EQ(trainer.AwaitEnd(60s), 2) << trainer.Output();
  const std::vector<std::string> errors = ErrorLines(trainer.Output());
  ASSERT_EQ(errors.size(), 1u) << trainer.Output();
  EXPECT_NE(errors[0].find(GetParam().culprit), std::string::npos) << errors[0];
  EXPECT_LE(LastCheckpoint(), 0) << "a step was taken";
  EXPECT_EQ(Finished(), std::nullopt);
}

constexpr char kOneUnit[] = "{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: 1}}";
constexpr char kTable[] =
    "{InputLayer: {batch_shape: [null, 2], dtype: int32}}, {Embedding: {input_dim: 5, "
    "output_dim: 3, name: words}}, {Flatten: {}}, {Dense: {units: 1}}";
const Tensor kLabels = Tensor::Of<float>({4, 1}, {1, 2, 3, 4});

INSTANTIATE_TEST_SUITE_P(
    , BadArraysTest,
    testing::Values(
        BadArrays{.name = "NaNInAnInput",
                  .layers = kOneUnit,
                  .x = Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, std::nanf(""), 7, 8}),
                  .y = kLabels,
                  .culprit = "/train.npz: array x: row 2: expected a finite number for features, "
                             "got nan"},
        BadArrays{.name = "InfinityInALabel",
                  .layers = kOneUnit,
                  .x = Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                  .y = Tensor::Of<float>({4, 1}, {1, HUGE_VALF, 3, 4}),
                  .culprit = "/train.npz: array y: row 1: expected a finite number for labels, "
                             "got inf"},
        BadArrays{.name = "IdBeyondTheVocabulary",
                  .layers = kTable,
                  .x = Tensor::Of<int32_t>({4, 2}, {0, 1, 2, 3, 4, 5, 0, 1}),
                  .y = kLabels,
                  .culprit = "id 5 at position 5 of the batch is no row of words/embeddings: "
                             "expected 0 to 4"},
        BadArrays{.name = "NegativeId",
                  .layers = kTable,
                  .x = Tensor::Of<int32_t>({4, 2}, {0, 1, 2, -1, 4, 3, 0, 1}),
                  .y = kLabels,
                  .culprit = "id -1 at position 3 of the batch is no row of words/embeddings"}),
    [](const testing::TestParamInfo<BadArrays>& info) { return std::string(info.param.name); });

TEST_F(TrainerTest, AModelFileThatIsNoArchiveEndsWithTwo) {
  const std::string file = folder_ + "/model.keras";
  for (const char* key : {"file", "weights"}) {
    ASSERT_EQ(WriteFileAtomically(file, "<html>404 Not Found</html>"), OkStatus());
    const std::string layers =
        std::string(key) == "file" ? "" : StrCat("layers: [", kOneUnit, "], ");
    Program trainer =
        Launch(StrCat("model: {", layers, key, ": ", file, "}\n", "loss: mean_squared_error\n",
                      "data: {train: {format: synthetic, examples: 8}}\n",
                      "max_steps: 3\nmodel_dir: ", folder_, "/model\n"));
    EXPECT_EQ(trainer.AwaitEnd(60s), 2) << trainer.Output();
    const std::vector<std::string> errors = ErrorLines(trainer.Output());
    ASSERT_EQ(errors.size(), 1u) << trainer.Output();
    EXPECT_NE(errors[0].find(StrCat(file, " is not a .keras file: it is not a ZIP archive")),
              std::string::npos)
        << errors[0];
  }
}

}  // namespace
}  // namespace tfjob::processes
