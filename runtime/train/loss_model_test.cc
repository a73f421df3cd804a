// Tests the labels of losses that the training file defines as models.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "runtime/data/pipeline.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::train {
namespace {

// Adds the labels, as float32, to the predictions.
constexpr char kLoss[] = R"({"class_name": "Functional", "config": {"name": "loss", "layers": [
  {"class_name": "InputLayer", "name": "y", "inbound_nodes": [],
   "config": {"name": "y", "batch_shape": [null, LENGTH], "dtype": "DTYPE"}},
  {"class_name": "InputLayer", "name": "p", "inbound_nodes": [],
   "config": {"name": "p", "batch_shape": [null, 1], "dtype": "float32"}},
  {"module": "keras.src.ops.core", "class_name": "Cast", "registered_name": "Cast", "name": "cast",
   "config": {"name": "cast", "dtype": "float32"}, "inbound_nodes": [{"args": [
     {"class_name": "__keras_tensor__",
      "config": {"shape": [null, LENGTH], "dtype": "DTYPE", "keras_history": ["y", 0, 0]}}],
     "kwargs": {}}]},
  {"class_name": "Add", "name": "add", "config": {"name": "add"},
   "inbound_nodes": [[["cast", 0, 0, {}], ["p", 0, 0, {}]]]}],
  "input_layers": [["y", 0, 0], ["p", 0, 0]], "output_layers": [["add", 0, 0]]}})";

config::TrainingConfig Config(const std::string& dtype, const std::string& data,
                              const std::string& length = "1") {
  const std::string loss = absl::StrReplaceAll(kLoss, {{"DTYPE", dtype}, {"LENGTH", length}});
  StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(
      StrCat("model: {layers: [{InputLayer: {batch_shape: [null, 2], name: in}}, ",
             "{Dense: {units: 1, name: out}}]}\n", "loss: {name: custom, model: ", loss, "}\n",
             "optimizer: sgd\nbatch_size: 4\nmax_steps: 1\ndata: ", data, "\n"),
      "training.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config::Validate(*config), OkStatus());
  return *std::move(config);
}

StatusOr<data::PipelineOptions> PipelineFor(const config::TrainingConfig& config) {
  ASSIGN_OR_RETURN(const auto source, LoadDataset(config, Split::kTrain));
  ASSIGN_OR_RETURN(const auto definition, DefineModel(config, Split::kTrain, *source, 1));
  ASSIGN_OR_RETURN(auto options, TrainingPipeline(config, definition, *source, 0, 1));
  RETURN_IF_ERROR(data::Pipeline::Create(source, options).status());
  return options;
}

TEST(LossModel, DeterminesTheLabels) {
  const auto options =
      PipelineFor(Config("float32", "{labels: value, train: {format: synthetic}}"));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->columns.back().dtype, DType::kFloat32);
  EXPECT_EQ(options->columns.back().classes, 0);
}

TEST(LossModel, RefusesOtherFormsOfLabels) {
  for (const std::string form : {"class", "one_hot"}) {
    const auto options =
        PipelineFor(Config("float32", StrCat("{labels: ", form, ", train: {format: synthetic}}")));
    EXPECT_EQ(Message(options.status()),
              StrCat("data.labels: expected auto or value, because loss.model determines the form ",
                     "of the labels, got ", form));
  }
}

TEST(LossModel, DeterminesTheTypeOfSyntheticLabels) {
  const auto source = LoadDataset(
      Config("int64", "{train: {format: synthetic, ranges: {out: [0, 2]}}}"), Split::kTrain);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->Find("labels")->dtype, DType::kInt64);
  EXPECT_EQ((*source)->Find("labels")->shape, Shape({1}));
  EXPECT_EQ(Message(PipelineFor(Config("int64", "{train: {format: synthetic}}")).status()),
            "data.train.ranges: expected a range for out, whose type is int64, such as "
            "{out: [0, 99]}");
}

TEST(LossModel, DeterminesTheShapeOfSyntheticLabels) {
  const auto shape = [](const std::string& length) -> StatusOr<Shape> {
    ASSIGN_OR_RETURN(
        const auto source,
        LoadDataset(Config("float32", "{train: {format: synthetic}}", length), Split::kTrain));
    return source->Find("labels")->shape;
  };
  EXPECT_EQ(shape("3").value(), Shape({3}));
  EXPECT_EQ(shape("null").value(), Shape({1}));
  EXPECT_EQ(Message(shape("null, null, null").status()),
            "data.train.format: synthetic data need the lengths of the labels; replace null in "
            "the first input of loss.model by numbers");
}

}  // namespace
}  // namespace tfjob::train
