// Tests the keys of TFRecord data.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/config/training_config.h"

namespace tfjob::config {
namespace {

constexpr char kBase[] = R"(
model: {layers: [{Dense: {units: 1}}]}
loss: mean_squared_error
max_steps: 1
data:
  train:
    format: tfrecord
    files: [a.tfrecord, "b-*"]
    features:
      x: {dtype: float32, shape: [2, 3], default_value: 0.5}
      y: {dtype: int64, shape: []}
      tokens: {dtype: int64, max_length: 8}
      image: {dtype: string, shape: [4], decode_raw: uint8}
    inputs: {x: x, tokens: tokens, image: image}
    targets: "y"
    on_damaged: skip
    cache_dir: /cache
)";

TEST(Features, AreRead) {
  const StatusOr<TrainingConfig> config = ParseTrainingConfig(kBase, "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_TRUE(Validate(*config).ok()) << Validate(*config);
  const SourceConfig& train = config->data.train;
  EXPECT_EQ(train.format, DataFormat::kTfRecord);
  EXPECT_EQ(train.files, (std::vector<std::string>{"a.tfrecord", "b-*"}));
  EXPECT_EQ(train.on_damaged, OnDamaged::kSkip);
  EXPECT_EQ(train.cache_dir, "/cache");
  ASSERT_EQ(train.features.size(), 4u);
  EXPECT_EQ(train.features.at("x").dtype, "float32");
  EXPECT_EQ(train.features.at("x").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(train.features.at("x").default_value, 0.5);
  EXPECT_EQ(train.features.at("y").shape, std::vector<int64_t>{});
  EXPECT_EQ(train.features.at("tokens").max_length, 8);
  EXPECT_EQ(train.features.at("image").decode_raw, "uint8");
}

TEST(Features, ArePrinted) {
  const StatusOr<TrainingConfig> config = ParseTrainingConfig(kBase, "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const StatusOr<TrainingConfig> again =
      ParseTrainingConfig(PrintTrainingConfig(*config), "printed");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(TrainingConfigToJson(*again), TrainingConfigToJson(*config));
  EXPECT_EQ(TrainingConfigToJson(*again)["data"]["train"]["features"]["x"],
            (Json{{"dtype", "float32"}, {"shape", {2, 3}}, {"default_value", 0.5}}));
}

// Returns the error of a training file with this value of a key.
std::string ErrorOf(std::string_view key, std::string_view value) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(kBase, "t.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  const Status set = Override(*config, StrCat("data.train.", key), value);
  return std::string(Message(set.ok() ? Validate(*config) : set));
}

std::string FeatureError(std::string_view feature) {
  const std::string error = ErrorOf("features", StrCat("{x: ", feature, "}"));
  constexpr std::string_view kAt = "data.train.features.x";
  return error.starts_with(kAt) ? error.substr(kAt.size()) : error;
}

TEST(Features, AreChecked) {
  EXPECT_EQ(FeatureError("{dtype: float32, shape: [2]}"), "");
  EXPECT_EQ(FeatureError("{shape: [2]}"),
            ".dtype: expected one of float32, int64, string, but it is missing");
  EXPECT_EQ(FeatureError("{dtype: half, shape: [2]}"),
            ".dtype: expected one of float32, int64, string, got \"half\"");
  EXPECT_EQ(FeatureError("{dtype: float32}"),
            ": expected shape (tf.io.FixedLenFeature), max_length (tf.io.VarLenFeature) or both "
            "(tf.io.FixedLenSequenceFeature), got neither");
  EXPECT_EQ(FeatureError("{dtype: float32, shape: [2], max_length: 2}"), "");
  EXPECT_EQ(FeatureError("{dtype: string, shape: [2], max_length: 2, decode_raw: uint8}"), "");
  EXPECT_EQ(FeatureError("{dtype: float32, shape: [16384, 2], max_length: 16384}"),
            ".max_length: expected steps with at most 268435456 elements in all, got 536870912");
  EXPECT_EQ(FeatureError("{dtype: float32, shpae: [2]}"),
            ".shpae: unknown key; did you mean \"shape\"?");
  EXPECT_EQ(FeatureError("{dtype: float32, shape: [0]}"),
            ".shape[0]: expected a length from 1 to 268435456, got 0");
  EXPECT_EQ(FeatureError("{dtype: float32, shape: [65536, 65536]}"),
            ".shape: expected a shape of at most 268435456 elements, got a list");
  EXPECT_EQ(FeatureError("{dtype: int64, shape: [], default_value: 0.5}"),
            ".default_value: expected a number of the type int64, got 0.5");
  EXPECT_EQ(FeatureError("{dtype: string, shape: []}"),
            ": expected one of decode_raw (the type of the elements that the string consists of), "
            "decode_image: true (a JPEG or PNG image), tokenize (a text) and vocabulary (terms), "
            "since models take numbers, got none");
  EXPECT_EQ(FeatureError("{dtype: int64, shape: [], decode_raw: uint8}"),
            ".decode_raw: belongs to dtype string, but dtype is int64; remove one of the two");
  EXPECT_EQ(
      FeatureError("{dtype: string, max_length: 2, decode_raw: uint8}"),
      ".shape: expected the shape of one step, which is one string of this sequence, but it is "
      "missing");
  EXPECT_EQ(FeatureError("{dtype: string, shape: [2], default_value: 1, decode_raw: uint8}"),
            ".default_value: cannot be combined with decode_raw; remove it");
}

TEST(Features, OfImagesAreChecked) {
  EXPECT_EQ(FeatureError("{dtype: string, shape: [8, 9, 3], decode_image: true}"), "");
  EXPECT_EQ(FeatureError("{dtype: string, shape: [8, 9, 1], decode_image: true, resize: nearest, "
                         "crop_to_aspect_ratio: true}"),
            "");
  const std::string shape =
      ".shape: expected the height, width and channels (1, 3 or 4) of the image, such as [224, "
      "224, 3]";
  EXPECT_EQ(FeatureError("{dtype: string, shape: [8, 9], decode_image: true}"), shape);
  EXPECT_EQ(FeatureError("{dtype: string, shape: [8, 9, 2], decode_image: true}"), shape);
  const std::string both =
      FeatureError("{dtype: string, shape: [8, 9, 3], decode_image: true, decode_raw: uint8}");
  EXPECT_TRUE(both.ends_with("got decode_raw and decode_image")) << both;
  EXPECT_EQ(FeatureError("{dtype: string, shape: [8, 9, 3], decode_image: true, max_length: 2}"),
            ".max_length: cannot be combined with decode_image; remove it");
  EXPECT_EQ(FeatureError("{dtype: int64, shape: [], decode_image: true}"),
            ".decode_image: belongs to dtype string, but dtype is int64; remove one of the two");
  EXPECT_EQ(FeatureError("{dtype: int64, shape: [], resize: nearest}"),
            ".resize: belongs to decode_image: true, which is not set; set it, or remove the key");
  EXPECT_EQ(FeatureError("{dtype: string, shape: [8, 9, 3], decode_image: true, resize: area}"),
            ".resize: expected one of bilinear, nearest, got \"area\"");
}

TEST(Features, OfImagesArePrinted) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(kBase, "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const Status set = Override(*config, "data.train.features",
                              "{i: {dtype: string, shape: [8, 9, 3], decode_image: true, resize: "
                              "nearest, crop_to_aspect_ratio: false}}");
  ASSERT_TRUE(set.ok()) << set;
  EXPECT_EQ(TrainingConfigToJson(*config)["data"]["train"]["features"]["i"],
            (Json{{"dtype", "string"},
                  {"shape", {8, 9, 3}},
                  {"decode_image", true},
                  {"resize", "nearest"},
                  {"crop_to_aspect_ratio", false}}));
}

TEST(ImageFolders, AreChecked) {
  StatusOr<TrainingConfig> config = ParseTrainingConfig(
      "{model: {layers: [{Dense: {units: 1}}]}, loss: mean_squared_error, max_steps: 1, data: "
      "{train: {format: images}}}",
      "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(Message(Validate(*config)),
            "data.train.folder: expected a folder that contains a folder of images for each class, "
            "but it is missing");
  SourceConfig& train = config->data.train;
  train.folder = "/photos";
  EXPECT_TRUE(Validate(*config).ok()) << Validate(*config);
  EXPECT_EQ(train.height, 256);
  EXPECT_EQ(train.width, 256);
  EXPECT_EQ(train.channels, 3);
  train.on_damaged = OnDamaged::kSkip;
  train.classes = {"cats", "dogs"};
  EXPECT_TRUE(Validate(*config).ok()) << Validate(*config);
  train.classes.emplace_back("cats");
  EXPECT_EQ(Message(Validate(*config)),
            "data.train.classes: expected each class once, got cats twice");
  train.classes.clear();
  train.channels = 2;
  EXPECT_EQ(Message(Validate(*config)), "data.train.channels: expected 1, 3 or 4, got 2");
  train.channels = 4;
  train.height = train.width = 10'000;
  EXPECT_EQ(Message(Validate(*config)),
            "data.train.height: expected images of at most 268435456 values (height × width × "
            "channels), got 10000 × 10000 × 4");
  train = {.format = DataFormat::kCsv, .file = "a.csv", .folder = "/photos"};
  EXPECT_EQ(Message(Validate(*config)),
            "data.train.folder: belongs to data.train.format images, texts, but data.train.format "
            "is csv; "
            "remove one of the two");
}

TEST(Features, AndFilesAreRequired) {
  EXPECT_EQ(ErrorOf("files", "[]"),
            "data.train.files: expected a list of TFRecord files, but it is missing");
  EXPECT_EQ(ErrorOf("features", "{}"),
            "data.train.features: expected the features to read, such as {x: {dtype: float32, "
            "shape: [784]}}, but it is missing");
  EXPECT_EQ(ErrorOf("format", "linear").substr(0, 43),
            "data.train.inputs: belongs to data.train.fo");
  EXPECT_EQ(ErrorOf("format", "jsonl"),
            "data.train.features.image.decode_raw: JSON has no strings of bytes; remove the key, "
            "and set dtype to float32 or int64 for numbers, or add tokenize or vocabulary");
  EXPECT_EQ(ErrorOf("on_damaged", "ignore"),
            "data.train.on_damaged: expected one of fail, skip, got \"ignore\"");
}

}  // namespace
}  // namespace tfjob::config
