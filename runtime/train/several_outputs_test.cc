// Trains and evaluates a model with two inputs and two outputs, on one device and with parameter
// servers.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <list>
#include <map>

#include "absl/strings/str_replace.h"
#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/npz.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/test_job.h"

namespace tfjob::train {
namespace {

constexpr char kModel[] = R"({"class_name": "Functional", "config": {"name": "two", "layers": [
  {"class_name": "InputLayer", "name": "a", "inbound_nodes": [],
   "config": {"name": "a", "batch_input_shape": [null, 2], "dtype": "float32"}},
  {"class_name": "InputLayer", "name": "b", "inbound_nodes": [],
   "config": {"name": "b", "batch_input_shape": [null, 3], "dtype": "float32"}},
  {"class_name": "Concatenate", "name": "both", "config": {"name": "both"},
   "inbound_nodes": [[["a", 0, 0, {}], ["b", 0, 0, {}]]]},
  {"class_name": "Dense", "name": "first", "config": {"name": "first", "units": 1},
   "inbound_nodes": [[["both", 0, 0, {}]]]},
  {"class_name": "Dense", "name": "second", "config": {"name": "second", "units": 3},
   "inbound_nodes": [[["both", 0, 0, {}]]]}],
  "input_layers": [["a", 0, 0], ["b", 0, 0]],
  "output_layers": [["first", 0, 0], ["second", 0, 0]]}})";

class SeveralOutputs : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/model.json", kModel).ok());
    WriteExamples("train", 24);
    WriteExamples("eval", 7);
  }

  // The inputs are float32 and uint8, the labels float64 and int32.
  void WriteExamples(const std::string& name, int64_t count) const {
    Tensor a(DType::kFloat32, {count, 2}), b(DType::kUInt8, {count, 3});
    Tensor first(DType::kFloat64, {count}), second(DType::kInt32, {count});
    Tensor weights(DType::kFloat32, {count});
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      a.data<float>()[2 * i] = std::sin(static_cast<float>(i));
      a.data<float>()[2 * i + 1] = std::cos(static_cast<float>(3 * i));
      for (size_t j = 0; j < 3; ++j) b.data<uint8_t>()[3 * i + j] = (i * 5 + j * 3) % 4;
      first.data<double>()[i] = static_cast<double>(a.data<float>()[2 * i]) - 0.5;
      second.data<int32_t>()[i] = static_cast<int32_t>((i * 7) % 3);
      weights.data<float>()[i] = static_cast<float>(i % 4) * 0.5f;
    }
    const std::vector<std::pair<std::string, Tensor>> arrays = {
        {"a", a}, {"b", b}, {"first", first}, {"classes", second}, {"w", weights}};
    ASSERT_EQ(io::WriteNpz(StrCat(folder_, "/", name, ".npz"), arrays), OkStatus());
  }

  config::TrainingConfig Config(const std::string& model_dir, const std::string& more) const {
    const std::string text =
        StrCat("model: {keras_json: ", folder_, "/model.json}\n",
               "outputs:\n"
               "  first: {loss: mean_squared_error, loss_weight: 0.5}\n"
               "  second:\n"
               "    loss: {name: sparse_categorical_crossentropy, from_logits: true}\n"
               "    metrics: [accuracy]\n"
               "    class_weight: {1: 3}\n"
               "optimizer: {name: sgd, learning_rate: 0.05}\n"
               "data:\n",
               "  train: {format: npz, file: ", folder_,
               "/train.npz, targets: {second: classes}, sample_weights: {first: w}}\n",
               "  eval: {format: npz, file: ", folder_, "/eval.npz, targets: {second: classes}}\n",
               "max_steps: 20\nthreads: 1\nlog_step_count_steps: 0\nmodel_dir: ", folder_, "/",
               model_dir, "\n", more);
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config::Validate(*config), OkStatus());
    return *std::move(config);
  }

  // Runs the job to completion. Returns the last progress that the chief reported.
  progress::Progress Run(const config::TrainingConfig& config, const std::vector<Task>& all) {
    for (const Task& task : all) AddressOf(task);
    std::list<RunningTask> tasks;
    for (const Task& task : all) tasks.emplace_back(config, Static(task, all));
    for (RunningTask& task : tasks) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
    return tasks.front().Progress();
  }

  std::map<std::string, std::vector<float>> Saved(const std::string& model_dir) const {
    std::map<std::string, std::vector<float>> saved;
    const auto latest = io::LatestCheckpoint(StrCat(folder_, "/", model_dir));
    if (!latest.ok() || !*latest) return saved;
    const auto reader = *io::BundleReader::Open((*latest)->prefix);
    for (const char* name : {"first/kernel", "first/bias", "second/kernel", "second/bias"}) {
      const Tensor value = *reader->Read(name);
      saved[name].assign(value.data<float>().begin(), value.data<float>().end());
    }
    return saved;
  }

  void ExpectSaved(const std::string& model_dir,
                   const std::map<std::string, std::vector<float>>& expected) const {
    const auto saved = Saved(model_dir);
    ASSERT_EQ(saved.size(), expected.size());
    for (const auto& [name, values] : expected) {
      ASSERT_EQ(saved.at(name).size(), values.size()) << name;
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(saved.at(name)[i], values[i], 1e-5) << name << " " << i;
    }
  }

  static void ExpectMetrics(const progress::Progress& seen) {
    std::map<std::string, double> metrics = seen.metrics;
    ASSERT_EQ(metrics.size(), 3u);
    EXPECT_TRUE(metrics.contains("second_accuracy"));
    EXPECT_NEAR(seen.loss.value_or(-1), 0.5 * metrics["first_loss"] + metrics["second_loss"], 1e-5);
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/several_outputs_test");
};

TEST_F(SeveralOutputs, ParameterServersTakeTheStepsOfOneDevice) {
  const progress::Progress alone = Run(Config("alone", "batch_size: 8\n"), {{"chief", 0}});
  const auto expected = Saved("alone");
  ASSERT_EQ(expected.size(), 4u);
  ExpectMetrics(alone);

  Run(Config("async", "batch_size: 8\n"), {{"chief", 0}, {"ps", 0}});
  ExpectSaved("async", expected);
  // Two tasks share each batch of 8.
  Run(Config("sync", "batch_size: 4\nstrategy: {mode: sync}\n"),
      {{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}});
  ExpectSaved("sync", expected);
}

TEST_F(SeveralOutputs, AnEvaluatorReportsEveryOutput) {
  const std::vector<Task> all = {{"chief", 0}, {"evaluator", 0}};
  for (const Task& task : all) AddressOf(task);
  const config::TrainingConfig config = Config("model", "batch_size: 8\n");
  RunningTask chief(config, Static({"chief", 0}, all));
  RunningTask evaluator(config, Static({"evaluator", 0}, all));
  EXPECT_EQ(chief.End(), OkStatus());
  EXPECT_EQ(evaluator.End(), OkStatus());
  const progress::Progress seen = evaluator.Progress();
  EXPECT_EQ(seen.step, 20);
  ExpectMetrics(seen);
}

std::string ErrorOf(const config::TrainingConfig& config) {
  const auto dataset = LoadDataset(config, Split::kTrain);
  if (!dataset.ok()) return std::string(Message(dataset.status()));
  return std::string(Message(DefineModel(config, Split::kTrain, **dataset, 1).status()));
}

TEST_F(SeveralOutputs, ErrorsNameTheKey) {
  const auto with = [&](const std::string& path, const std::string& value) {
    config::TrainingConfig config = Config("model", "");
    EXPECT_EQ(config::Override(config, path, value), OkStatus());
    return ErrorOf(config);
  };
  EXPECT_EQ(with("outputs.first.loss_weight", "2"), "");
  EXPECT_EQ(with("outputs.frist.loss", "mean_squared_error"),
            "outputs.frist: the model has no such output; did you mean \"first\"?");
  EXPECT_EQ(with("outputs", "{first: {loss: mean_squared_error}}"),
            "outputs.second.loss: expected a loss for this output, or one for all (loss), but both "
            "are missing");
  EXPECT_EQ(with("data.train.inputs", "{a: a, c: b}"),
            "data.train.inputs.c: the model has no such input or output; did you mean \"a\"?");
  EXPECT_EQ(with("data.train.targets", "classes"),
            "data.train.targets: the model has 2 of them: give a map of their names to arrays");
  EXPECT_EQ(
      with("outputs.first.class_weight", "{0: 2}"),
      StrCat("class_weight: the data have sample weights, too (", folder_,
             "/train.npz: array w); multiply them by the class weights, and remove this key"));
  EXPECT_EQ(with("data.train", "{format: linear}").substr(0, 34),
            "data.train: the data provide no a,");
}

TEST_F(SeveralOutputs, InputsMayNotHaveTheNameOfAnotherFeed) {
  for (const std::string name : {"seed", "loss_weight"}) {
    config::TrainingConfig config = Config("model", "");
    const std::string model = absl::StrReplaceAll(kModel, {{"\"b\"", "\"" + name + "\""}});
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/model.json", model).ok());
    ASSERT_EQ(config::Override(config, "data.train.inputs", "{a: a, " + name + ": b}"), OkStatus());
    EXPECT_EQ(ErrorOf(config), "input " + name + " of the model: the name \"" + name +
                                   "\" is reserved; rename the layer");
  }
}

TEST(LabelsOfClasses, NeedAnOutputWithScores) {
  const auto config = config::ParseTrainingConfig(
      "model: {layers: [Dense: {units: 1}, Reshape: {target_shape: []}]}\n"
      "loss: categorical_crossentropy\n"
      "data: {train: {format: linear}}\nmax_steps: 1\n",
      "training.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ErrorOf(*config),
            "categorical_crossentropy: labels are classes, so the model's output must have one "
            "score per class, but it is a single number per example; end the model with a Dense "
            "layer of as many units as there are classes");
}

TEST_F(SeveralOutputs, SyntheticDataHaveTheTypesOfTheModel) {
  config::TrainingConfig config = Config("model", "");
  ASSERT_EQ(config::Override(config, "data.train.format", "synthetic"), OkStatus());
  const auto dataset = LoadDataset(config, Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 100);
  EXPECT_EQ((*dataset)->Find("b")->shape, Shape({3}));
  EXPECT_EQ((*dataset)->Find("labels/second")->dtype, DType::kInt64);
  const auto definition = DefineModel(config, Split::kTrain, **dataset, 1);
  ASSERT_TRUE(definition.ok()) << definition.status();
  const auto options = TrainingPipeline(config, *definition, **dataset, 0, 1);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(data::Pipeline::Create(*dataset, *options).ok());
}

}  // namespace
}  // namespace tfjob::train
