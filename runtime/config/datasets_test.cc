// Tests the keys of data that combine datasets or select examples.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/config/keys.h"
#include "runtime/config/training_config.h"

namespace tfjob::config {
namespace {

// Returns the error of a training file with this data.train section, or "accepted".
std::string Checked(const std::string& train) {
  const std::string text =
      "model: {layers: [{Dense: {units: 1}}]}\nloss: mean_squared_error\n"
      "epochs: 1\ndata: {train: " +
      train + "}\n";
  const StatusOr<TrainingConfig> config = ParseTrainingConfig(text, "t.yaml");
  if (!config.ok()) return std::string(Message(config.status()));
  const Status valid = Validate(*config);
  return valid.ok() ? "accepted" : std::string(Message(valid));
}

constexpr char kNested[] =
    "{format: mix, stop: all, take: 50, cache: memory, datasets: ["
    "{format: csv, file: a.csv, weight: 0.7, skip: 3}, "
    "{format: concatenate, weight: 0.3, repeat: 2, datasets: [{format: csv, file: b.csv}, "
    "{format: idx, images: i, labels: l, scale: 1/255}]}]}";

TEST(Datasets, AreReadAndPrinted) {
  TrainingConfig config;
  ASSERT_TRUE(Override(config, "data.train", kNested).ok());
  const SourceConfig& train = config.data.train;
  EXPECT_EQ(train.format, DataFormat::kMix);
  EXPECT_EQ(train.stop, MixStop::kAll);
  EXPECT_EQ(train.take, 50);
  EXPECT_EQ(train.cache, CacheKind::kMemory);
  ASSERT_EQ(train.datasets.size(), 2u);
  EXPECT_EQ(train.datasets[0].file, "a.csv");
  EXPECT_EQ(train.datasets[0].weight, 0.7);
  EXPECT_EQ(train.datasets[0].skip, 3);
  EXPECT_EQ(train.datasets[0].take, std::nullopt);
  ASSERT_EQ(train.datasets[1].datasets.size(), 2u);
  EXPECT_EQ(train.datasets[1].repeat, 2);
  EXPECT_EQ(train.datasets[1].datasets[1].format, DataFormat::kIdx);
  EXPECT_DOUBLE_EQ(train.datasets[1].datasets[1].scale, 1.0 / 255);

  const std::string printed = PrintTrainingConfig(config);
  const StatusOr<TrainingConfig> again = ParseTrainingConfig(printed, "printed");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
  EXPECT_EQ(PrintTrainingConfig(*again), printed);
  EXPECT_EQ(again->data.train.datasets[1].datasets[1].labels, "l");
}

TEST(Datasets, AreAccepted) {
  EXPECT_EQ(Checked(kNested), "accepted");
  EXPECT_EQ(Checked("{format: csv, file: a.csv, skip: 1, take: 2, repeat: 3, cache: memory}"),
            "accepted");
  EXPECT_EQ(Checked("{format: interleave, cycle_length: 2, block_length: 4, datasets: [{format: "
                    "csv, file: a.csv}]}"),
            "accepted");
  EXPECT_EQ(Checked("{format: zip, datasets: [{format: npz, file: a.npz, inputs: x}, {format: npz, "
                    "file: b.npz, targets: labels}]}"),
            "accepted");
  EXPECT_EQ(
      Checked("{format: zip, datasets: [{format: npz, file: a.npz, inputs: x}, {format: csv, "
              "file: b.csv, features: {\"y\": {dtype: float32, shape: []}}, targets: \"y\"}]}"),
      "accepted");
}

TEST(Datasets, ErrorsNameTheDataset) {
  const std::map<std::string, std::string> errors = {
      {"{format: mix}", "data.train.datasets: expected a list of datasets, but it is missing"},
      {"{format: mix, datasets: []}",
       "t.yaml: data.train.datasets: expected at least one dataset, got an empty list"},
      {"{format: csv, file: a.csv, datasets: [{format: csv, file: b.csv}]}",
       "data.train.datasets: belongs to data.train.format concatenate, mix, interleave, zip, but "
       "data.train.format is csv; remove one of the two"},
      {"{format: mix, datasets: [{format: csv}]}",
       "data.train.datasets[0].file: expected a CSV file, but it is missing"},
      {"{format: mix, datasets: [{format: csv, fille: x}]}",
       "t.yaml: data.train.datasets[0].fille: unknown key; did you mean \"file\"?"},
      {"{format: mix, datasets: [{file: a.csv}]}",
       "data.train.datasets[0].file: belongs to data.train.datasets[0].format csv, npz, but "
       "data.train.datasets[0].format is not set; set it, or remove data.train.datasets[0].file"},
      {"{format: mix, datasets: [{format: csv, file: a.csv, folder: x}]}",
       "data.train.datasets[0].folder: belongs to data.train.datasets[0].format images, texts, but "
       "data.train.datasets[0].format is csv; remove one of the two"},
      {"{format: mix, datasets: [{format: csv, file: a.csv, weight: 0}]}",
       "data.train.datasets[0].weight: expected a finite number above 0, got 0; remove a dataset "
       "that is not used"},
      {"{format: csv, file: a.csv, weight: 1}",
       "data.train.weight: belongs to one of the datasets of a mix, which this dataset is not; "
       "remove it"},
      {"{format: concatenate, datasets: [{format: csv, file: a.csv, weight: 1}]}",
       "data.train.datasets[0].weight: belongs to one of the datasets of a mix, which this dataset "
       "is not; remove it"},
      {"{format: zip, datasets: [{format: csv, file: a.csv}]}",
       "data.train.datasets[0].format: expected npz, tfrecord, jsonl or csv with features for "
       "datasets that are zipped, since only these name the inputs and targets they provide"},
      {"{format: zip, datasets: [{format: npz, file: a.npz}]}",
       "data.train.datasets[0].inputs: expected the inputs or targets that this dataset provides, "
       "but it is missing"},
      {"{format: csv, file: a.csv, take: 0}",
       "t.yaml: data.train.take: expected a value from 1 to 281474976710656, got 0"},
      {"{format: csv, file: a.csv, cache: disk}",
       "t.yaml: data.train.cache: expected one of none, memory, got \"disk\""},
  };
  for (const auto& [train, error] : errors) EXPECT_EQ(Checked(train), error) << train;
  EXPECT_EQ(
      Checked("{format: csv, file: a.csv}, eval: {format: mix, datasets: [{format: csv, "
              "file: a.csv, folder: x}]}"),
      "data.eval.datasets[0].folder: belongs to data.eval.datasets[0].format images, texts, but "
      "data.eval.datasets[0].format is csv; remove one of the two");
}

TEST(Datasets, AreNotNestedWithoutLimit) {
  std::string nested = "{format: csv, file: a.csv}";
  for (int i = 0; i < 8; ++i) nested = "{format: concatenate, datasets: [" + nested + "]}";
  EXPECT_EQ(Checked(nested), "accepted");
  EXPECT_EQ(Checked("{format: concatenate, datasets: [" + nested + "]}"),
            "t.yaml: data: expected at most 8 levels of datasets in datasets, got more");
}

}  // namespace
}  // namespace tfjob::config
