// Tests which classes the images of data.train and data.eval have.
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/data/images/test_folder.h"
#include "runtime/data/pipeline.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/job/job_inputs.h"

namespace tfjob::train {
namespace {

using data::testing::ImageFolder;

// Returns a training file for the images in the folders `train` and `eval`.
config::TrainingConfig ConfigFor(const ImageFolder& train, const ImageFolder& eval) {
  StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(
      StrCat("model: {layers: [{InputLayer: {batch_shape: [null, 2, 3, 3]}}, {Flatten: }, ",
             "{Dense: {units: 3}}]}\n",
             "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n", "data:\n",
             "  train: {format: images, folder: ", train.path(), ", height: 2, width: 3}\n",
             "  eval: {format: images, folder: ", eval.path(), ", height: 2, width: 3}\n",
             "batch_size: 1\nmax_steps: 1\n"),
      "training.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

// Returns the labels of the evaluation data, in the order of the classes.
StatusOr<std::vector<int64_t>> EvalLabels(const config::TrainingConfig& config) {
  ASSIGN_OR_RETURN(const auto source, LoadDataset(config, Split::kEval));
  ASSIGN_OR_RETURN(
      const auto pipeline,
      data::Pipeline::Create(
          source,
          {.batch_size = 1,
           .epochs = 1,
           .shuffle = false,
           .prefetch = 0,
           .columns = {{.name = "y", .array = data::kLabelsArray, .dtype = DType::kInt64}}}));
  std::vector<int64_t> labels;
  while (const data::Batch* batch = pipeline->Next())
    labels.push_back(batch->Find("y")->data<int64_t>()[0]);
  RETURN_IF_ERROR(pipeline->status());
  return labels;
}

TEST(ImageData, EvaluationUsesTheClassesOfTraining) {
  const ImageFolder train, eval;
  for (const char* name : {"cats/1", "dogs/1", "eels/1"}) train.WriteGrey(name, 1);
  for (const char* name : {"cats/1", "dogs/1"}) eval.WriteGrey(name, 1);
  config::TrainingConfig config = ConfigFor(train, eval);
  config.data.train.classes = {"dogs", "cats"};
  StatusOr<std::vector<int64_t>> labels = EvalLabels(config);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, (std::vector<int64_t>{0, 1}));
  config.data.train.classes = {"dogs"};
  labels = EvalLabels(config);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, (std::vector<int64_t>{0}));
  config.data.eval.classes = {"cats", "dogs"};  // data.eval lists its own classes
  labels = EvalLabels(config);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, (std::vector<int64_t>{0, 1}));
}

TEST(ImageData, OtherClassesInEvaluationAreAnError) {
  const ImageFolder train, eval;
  for (const char* name : {"cats/1", "dogs/1", "eels/1"}) train.WriteGrey(name, 1);
  for (const char* name : {"cats/1", "eels/1"}) eval.WriteGrey(name, 1);
  const config::TrainingConfig config = ConfigFor(train, eval);
  EXPECT_EQ(Message(EvalLabels(config).status()),
            StrCat("data.eval: expected the same classes as in data.train, but class 1 is the ",
                   "folder dogs in ", train.path(), ", and the folder eels in ", eval.path(),
                   "; list the classes in data.train.classes, which data.eval then uses, too"));
  std::filesystem::create_directories(eval.path() + "/dogs");
  StatusOr<std::vector<int64_t>> labels = EvalLabels(config);  // a folder may be empty
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, (std::vector<int64_t>{0, 2}));
  eval.WriteGrey("foxes/1", 1);
  EXPECT_NE(Message(EvalLabels(config).status()).find("class 3 is missing in "), std::string::npos);
  // An evaluator does not need the training images.
  std::filesystem::remove_all(train.path());
  labels = EvalLabels(config);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, (std::vector<int64_t>{0, 2, 3}));
}

// Returns data.train or data.eval as the concatenation of the dataset and the images in `folder`.
config::SourceConfig Joined(const config::SourceConfig& dataset, const std::string& folder) {
  config::SourceConfig joined;
  joined.format = config::DataFormat::kConcatenate;
  joined.datasets = {dataset, dataset};
  joined.datasets[1].folder = folder;
  return joined;
}

TEST(ImageData, FoldersOfOneDatasetHaveTheSameClasses) {
  const ImageFolder first, other;
  for (const char* name : {"cats/1", "dogs/1"}) first.WriteGrey(name, 1);
  for (const char* name : {"ants/1", "cats/1", "dogs/1"}) other.WriteGrey(name, 1);
  config::TrainingConfig config = ConfigFor(first, first);
  config.data.eval = Joined(config.data.eval, other.path());
  config.data.train = Joined(config.data.train, other.path());
  EXPECT_EQ(Message(LoadDataset(config, Split::kTrain).status()),
            StrCat("data.train.datasets[1]: expected the same classes as in ",
                   "data.train.datasets[0], but class 0 is the folder cats in ", first.path(),
                   ", and the folder ants in ", other.path(),
                   "; list the same classes in the key classes of both datasets"));
  for (config::SourceConfig& dataset : config.data.train.datasets)
    dataset.classes = {"dogs", "cats"};
  EXPECT_EQ(LoadDataset(config, Split::kTrain).status(), OkStatus());
  // The evaluation data uses the list of classes of a dataset in data.train.
  const StatusOr<std::vector<int64_t>> labels = EvalLabels(config);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(*labels, (std::vector<int64_t>{0, 1, 0, 1}));
}

TEST(ImageData, EvaluationIsComparedWithTheDatasetsOfTraining) {
  const ImageFolder train, eval;
  for (const char* name : {"cats/1", "dogs/1"}) train.WriteGrey(name, 1);
  for (const char* name : {"ants/1", "dogs/1"}) eval.WriteGrey(name, 1);
  config::TrainingConfig config = ConfigFor(train, eval);
  config.data.train = Joined(config.data.train, train.path());
  EXPECT_EQ(Message(EvalLabels(config).status()),
            StrCat("data.eval: expected the same classes as in data.train.datasets[0], but class ",
                   "0 is the folder cats in ", train.path(), ", and the folder ants in ",
                   eval.path(), "; list the classes in data.train.datasets[0].classes, which ",
                   "data.eval then uses, too"));
}

// Returns the images of one epoch, in the order of the files.
std::vector<std::vector<float>> ImagesOf(const config::TrainingConfig& config, Split split) {
  const StatusOr<model::Model> model = ReadModel(config.model);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto source = DataOf({}, config, split, *model);
  EXPECT_TRUE(source.ok()) << source.status();
  const auto pipeline = data::Pipeline::Create(
      *source,
      {.batch_size = 1,
       .epochs = 1,
       .shuffle = false,
       .prefetch = 0,
       .columns = {
           {.name = "x", .array = data::kFeaturesArray, .shape = (*source)->fields()[0].shape}}});
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  std::vector<std::vector<float>> images;
  while (const data::Batch* batch = (*pipeline)->Next()) {
    const auto values = batch->Find("x")->data<float>();
    images.emplace_back(values.begin(), values.end());
  }
  EXPECT_EQ((*pipeline)->status(), OkStatus());
  return images;
}

TEST(ImageData, AugmentChangesTrainingAtRandomAndEvaluationAsTheModelWould) {
  const ImageFolder folder;
  for (int i = 0; i < 9; ++i) folder.WriteGrey(StrCat("cats/", i), static_cast<uint8_t>(10 * i));
  config::TrainingConfig config = ConfigFor(folder, folder);
  ASSERT_EQ(
      config::Override(config, "data.augment",
                       "[{RandomBrightness: {factor: 0.1}}, {CenterCrop: {height: 1, width: 2}}]"),
      OkStatus());
  const auto training = ImagesOf(config, Split::kTrain);
  EXPECT_EQ(training, ImagesOf(config, Split::kTrain));
  const auto evaluation = ImagesOf(config, Split::kEval);
  ASSERT_EQ(evaluation.size(), 9u);
  int changed = 0;
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(evaluation[i], std::vector<float>(2 * 3, static_cast<float>(10 * i)));
    ASSERT_EQ(training[i].size(), 2u * 3);
    EXPECT_NEAR(training[i][0], 10 * static_cast<double>(i), 0.1 * 255);
    changed += training[i][0] != evaluation[i][0] ? 1 : 0;
  }
  EXPECT_GE(changed, 8);
}

TEST(ImageData, ErrorsOfAugmentNameTheKey) {
  const ImageFolder folder;
  folder.WriteGrey("cats/1", 1);
  config::TrainingConfig config = ConfigFor(folder, folder);
  const auto error = [&](const char* layers) {
    EXPECT_EQ(config::Override(config, "data.augment", layers), OkStatus());
    return std::string(
        Message(DataOf({}, config, Split::kTrain, *ReadModel(config.model)).status()));
  };
  EXPECT_EQ(error("[{Dense: {units: 2}}]"),
            "data.augment (data.train): expected layers without variables, such as RandomFlip, "
            "got the variable dense/kernel; move its layer to the model");
  std::filesystem::remove_all(folder.path());  // the layers are checked before the data
  EXPECT_EQ(
      error("[RandomFlap]"),
      "data.augment[0]: layer class RandomFlap is not supported; did you mean \"RandomFlip\"?");
}

}  // namespace
}  // namespace tfjob::train
