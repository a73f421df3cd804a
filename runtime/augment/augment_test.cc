// Tests sources whose examples are changed by layers.
#include "runtime/augment/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "runtime/augment/example_program.h"
#include "runtime/base/json.h"
#include "runtime/base/yaml.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"
#include "runtime/model/keras.h"
#include "runtime/trace/trace.h"

namespace tfjob::augment {
namespace {

using data::Column;
using data::NamedTensor;
using data::RowReader;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

using SourcePtr = std::shared_ptr<const data::Source>;

constexpr int64_t kRows = 24, kHeight = 4, kWidth = 3;
constexpr size_t kPixels = kHeight * kWidth;

// Returns a source of images with one channel. The bytes of image i are 10·i, 10·i + 1, …, and its
// label is i.
SourcePtr Images() {
  Tensor images(DType::kUInt8, {kRows, kHeight, kWidth, 1});
  Tensor labels(DType::kInt64, {kRows});
  for (size_t i = 0; i < images.data<uint8_t>().size(); ++i)
    images.data<uint8_t>()[i] = static_cast<uint8_t>(i / kPixels * 10 + i % kPixels);
  std::iota(labels.data<int64_t>().begin(), labels.data<int64_t>().end(), 0);
  return data::TableSource(std::make_shared<const data::Dataset>(
      data::Dataset{.arrays = {{"features", "images.npy", images}, {"labels", "l.npy", labels}}}));
}

model::Model Layers(const std::string& yaml) {
  const StatusOr<std::vector<Json>> documents = ParseYaml(yaml, "layers.yaml");
  EXPECT_TRUE(documents.ok()) << documents.status();
  StatusOr<model::Model> layers = model::ReadLayers(JsonField((*documents)[0], "data.augment"));
  EXPECT_TRUE(layers.ok()) << layers.status();
  return *std::move(layers);
}

StatusOr<SourcePtr> Changed(const std::string& layers, bool training = true, int threads = 1,
                            uint64_t seed = 5) {
  return Augment(Images(), {.field = "features",
                            .layers = Layers(layers),
                            .training = training,
                            .seed = seed,
                            .threads = threads});
}

std::unique_ptr<RowReader> Open(const SourcePtr& source, float scale = 1) {
  StatusOr<std::unique_ptr<RowReader>> reader =
      source->Open({{.name = "y", .array = "labels", .dtype = DType::kInt64},
                    {.name = "x",
                     .array = "features",
                     .shape = source->Find("features")->shape,
                     .scale = scale}});
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

using Image = std::vector<float>;

// Reads the images with the indices `rows`, and checks their labels.
std::vector<Image> Read(RowReader& reader, int64_t epoch, const std::vector<int64_t>& rows,
                        std::vector<int64_t> shape = {kHeight, kWidth, 1}) {
  const auto count = static_cast<int64_t>(rows.size());
  shape.insert(shape.begin(), count);
  std::vector<NamedTensor> tensors = {{"y", Tensor(DType::kInt64, {count})},
                                      {"x", Tensor(DType::kFloat32, Shape(shape))}};
  reader.BeginEpoch(epoch);
  EXPECT_EQ(reader.Read(rows, tensors), OkStatus());
  const auto labels = std::as_const(tensors[0].value).data<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(labels.begin(), labels.end()), rows);
  const auto values = std::as_const(tensors[1].value).data<float>();
  const size_t size = rows.empty() ? 0 : values.size() / rows.size();
  std::vector<Image> images;
  for (size_t i = 0; i < rows.size(); ++i)
    images.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i * size),
                        values.begin() + static_cast<std::ptrdiff_t>((i + 1) * size));
  return images;
}

std::vector<int64_t> AllRows() {
  std::vector<int64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

Image ImageOf(int64_t row, bool reversed_rows = false) {
  Image image;
  for (int64_t y = 0; y < kHeight; ++y) {
    for (int64_t x = 0; x < kWidth; ++x)
      image.push_back(
          static_cast<float>(10 * row + (reversed_rows ? kHeight - 1 - y : y) * kWidth + x));
  }
  return image;
}

TEST(Augment, FlipsEachImageOrNot) {
  const SourcePtr source = *Changed("[{RandomFlip: {mode: vertical}}]");
  const auto reader = Open(source);
  const std::vector<Image> images = Read(*reader, 0, AllRows());
  int flipped = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    const Image& image = images[static_cast<size_t>(row)];
    EXPECT_TRUE(image == ImageOf(row) || image == ImageOf(row, true)) << row;
    flipped += image == ImageOf(row, true) ? 1 : 0;
  }
  EXPECT_GT(flipped, kRows / 6);
  EXPECT_LT(flipped, kRows - kRows / 6);
}

TEST(Augment, DependsOnlyOnSeedEpochAndExample) {
  const std::string layers = "[{RandomFlip: {}}, {RandomBrightness: {factor: 0.2}}]";
  const SourcePtr one = *Changed(layers), three = *Changed(layers, true, /*threads=*/3);
  const auto reader = Open(one), other = Open(three);
  const std::vector<Image> images = Read(*reader, 2, AllRows());
  EXPECT_EQ(Read(*other, 2, AllRows()), images);
  // Read smaller batches in a different order, after reading a different epoch.
  EXPECT_NE(Read(*other, 1, AllRows()), images);
  const std::vector<Image> part = Read(*other, 2, {7, 3});
  EXPECT_THAT(part, ElementsAre(images[7], images[3]));
  EXPECT_THAT(Read(*other, 2, {3}), ElementsAre(images[3]));
  EXPECT_NE(Read(*Open(*Changed(layers, true, 1, /*seed=*/6)), 2, AllRows()), images);
}

// Returns the number that RandomBrightness has added to the first value of each image.
std::vector<float> Brightness(RowReader& reader, int64_t epoch) {
  std::vector<float> added;
  for (const Image& image : Read(reader, epoch, AllRows()))
    added.push_back(image[0] - 10 * static_cast<float>(added.size()));
  return added;
}

TEST(Augment, DrawsDifferentNumbersForEachExampleAndEpoch) {
  const SourcePtr source =
      *Changed("[{RandomBrightness: {factor: 0.2, value_range: [-1000, 2000]}}]");
  const auto reader = Open(source);
  const std::vector<float> first = Brightness(*reader, 0), second = Brightness(*reader, 1);
  // Compare with a tolerance, because the values are rounded differently.
  std::set<int> distinct;
  for (const auto& epoch : {first, second}) {
    for (const float value : epoch) distinct.insert(static_cast<int>(std::lround(value * 100)));
  }
  EXPECT_EQ(distinct.size(), size_t{2 * kRows});
}

TEST(Augment, DrawsDifferentNumbersForEachLayer) {
  const std::string brightness = "{RandomBrightness: {factor: 0.2, value_range: [-1000, 2000]}}";
  const std::vector<float> one = Brightness(*Open(*Changed("[" + brightness + "]")), 0);
  const std::vector<float> two =
      Brightness(*Open(*Changed("[" + brightness + ", " + brightness + "]")), 0);
  int doubled = 0;
  for (size_t i = 0; i < one.size(); ++i) doubled += std::fabs(two[i] - 2 * one[i]) < 0.01 ? 1 : 0;
  EXPECT_LE(doubled, 1);
}

TEST(Augment, CropsAtRandomOnlyInTraining) {
  const std::string layers = "[{RandomCrop: {height: 2, width: 1}}]";
  const SourcePtr training = *Changed(layers), evaluation = *Changed(layers, /*training=*/false);
  EXPECT_EQ(training->Find("features")->shape, Shape({2, 1, 1}));
  EXPECT_EQ(training->Find("features")->dtype, DType::kFloat32);
  std::set<float> first;
  for (const Image& image : Read(*Open(training), 0, AllRows(), {2, 1, 1})) {
    EXPECT_EQ(image[1] - image[0], kWidth);
    first.insert(image[0]);
  }
  EXPECT_GT(first.size(), size_t{6});
  // The first two columns have the aspect ratio of the result. Each value of the result is the mean
  // of two by two pixels.
  const std::vector<Image> resized = Read(*Open(evaluation), 0, {0, 3}, {2, 1, 1});
  EXPECT_THAT(resized, ElementsAre(ElementsAre(2, 8), ElementsAre(32, 38)));
}

TEST(Augment, RandomLayersDoNothingInEvaluation) {
  for (const char* layers :
       {"[{RandomFlip: {}}]", "[{Reshape: {target_shape: [4, 3, 1]}}, {RandomFlip: {}}]"}) {
    const auto reader = Open(*Changed(layers, /*training=*/false));
    EXPECT_THAT(Read(*reader, 0, {4, 9}), ElementsAre(ImageOf(4), ImageOf(9))) << layers;
    EXPECT_THAT(Read(*reader, 1, {2}), ElementsAre(ImageOf(2))) << layers;
  }
}

TEST(Augment, TakesDataWithoutTheChannelAxis) {
  Tensor images(DType::kUInt8, {kRows, kHeight, kWidth});
  std::iota(images.data<uint8_t>().begin(), images.data<uint8_t>().end(), uint8_t{0});
  const SourcePtr grey = data::TableSource(std::make_shared<const data::Dataset>(
      data::Dataset{.arrays = {{"features", "images.npy", images}}}));
  for (const char* layers :
       {"[{CenterCrop: {height: 4, width: 1}}]",
        "[{InputLayer: {batch_shape: [null, 4, 3, 1]}}, {CenterCrop: {height: 4, width: 1}}]"}) {
    const auto source = Augment(grey, {.field = "features", .layers = Layers(layers)});
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ((*source)->Find("features")->shape, Shape({4, 1, 1}));
    const auto reader = *(*source)->Open({{.name = "x", .array = "features", .shape = {4, 1, 1}}});
    std::vector<NamedTensor> tensors = {{"x", Tensor(DType::kFloat32, {1, 4, 1, 1})}};
    ASSERT_EQ(reader->Read(std::vector<int64_t>{1}, tensors), OkStatus());
    EXPECT_THAT(std::as_const(tensors[0].value).data<float>(), ElementsAre(13, 16, 19, 22));
  }
}

TEST(Augment, TellsExamplesApartWhoseIndicesDifferBy2To32) {
  const StatusOr<graph::Graph> graph =
      ExampleGraph(Layers("[{RandomBrightness: {factor: 0.2, value_range: [-1000, 2000]}}]"),
                   {1, 1, 1}, /*training=*/true);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto program = *ExampleProgram::Create(*graph);
  const float zero = 0;
  std::set<float> values;
  for (const int64_t example : {int64_t{7}, 7 + (int64_t{1} << 32), 7 + (int64_t{2} << 32)}) {
    float value = 0;
    ASSERT_EQ(program->Run({.seed = 1, .example = example}, {&zero, 1}, {&value, 1}), OkStatus());
    values.insert(value);
  }
  EXPECT_EQ(values.size(), 3u);
}

TEST(Augment, IsNoPartOfAProfile) {
  const auto reader = Open(*Changed("[{RandomFlip: {}}]"));
  trace::Start();
  Read(*reader, 0, AllRows());
  for (const trace::ThreadEvents& thread : trace::Stop().threads) {
    for (const trace::Event& event : thread.events)
      EXPECT_NE(event.category, trace::Category::kOp) << event.name.view();
  }
}

TEST(Augment, AppliesTheScaleBeforeTheLayers) {
  const SourcePtr source = *Changed("[{Rescaling: {scale: 1, offset: 100}}]");
  const std::vector<Image> images = Read(*Open(source, /*scale=*/2), 0, {1});
  EXPECT_EQ(images[0][0], 2 * 10 + 100);
}

TEST(Augment, FillsEveryColumnOfTheFieldAlike) {
  const SourcePtr source = *Changed("[{RandomFlip: {}}]");
  const Shape shape = source->Find("features")->shape;
  const auto reader = *source->Open({{.name = "x", .array = "features", .shape = shape},
                                     {.name = "target", .array = "features", .shape = shape}});
  std::vector<NamedTensor> tensors;
  for (const char* name : {"x", "target"})
    tensors.push_back({name, Tensor(DType::kFloat32, {4, kHeight, kWidth, 1})});
  ASSERT_EQ(reader->Read(std::vector<int64_t>{0, 1, 2, 3}, tensors), OkStatus());
  EXPECT_TRUE(std::ranges::equal(tensors[0].value.bytes(), tensors[1].value.bytes()));
}

TEST(Augment, LeavesOtherColumnsAlone) {
  const SourcePtr source = *Changed("[{RandomFlip: {}}]");
  const auto reader = *source->Open({{.name = "y", .array = "labels", .dtype = DType::kInt64}});
  std::vector<NamedTensor> tensors = {{"y", Tensor(DType::kInt64, {2})}};
  ASSERT_EQ(reader->Read(std::vector<int64_t>{5, 4}, tensors), OkStatus());
  EXPECT_THAT(std::as_const(tensors[0].value).data<int64_t>(), ElementsAre(5, 4));
}

TEST(Augment, TellsOtherSeedsAndLayersApart) {
  const uint64_t fingerprint = (*Changed("[{RandomFlip: {}}]"))->fingerprint();
  EXPECT_EQ((*Changed("[{RandomFlip: {}}]"))->fingerprint(), fingerprint);
  EXPECT_NE((*Changed("[{RandomFlip: {mode: vertical}}]"))->fingerprint(), fingerprint);
  EXPECT_NE((*Changed("[{RandomFlip: {}}]", true, 1, 6))->fingerprint(), fingerprint);
  EXPECT_NE((*Changed("[{RandomFlip: {}}]", false))->fingerprint(), fingerprint);
}

TEST(Augment, DescribesTheLayers) {
  EXPECT_THAT((*Changed("[{RandomFlip: {}}, {CenterCrop: {height: 2, width: 2}}]"))->Describe(),
              EndsWith("; features changed by RandomFlip, CenterCrop when a batch needs it by 1 "
                       "thread"));
}

TEST(Augment, RefusesLayersThatDoNotFit) {
  const Status variables = Changed("[{Flatten: {}}, {Dense: {units: 2}}]").status();
  EXPECT_EQ(Message(variables),
            "expected layers without variables, such as RandomFlip, got the variable dense/kernel; "
            "move its layer to the model");
  EXPECT_THAT(Message(Changed("[{Reshape: {target_shape: [12, 1]}}, {Masking: {}}]").status()),
              HasSubstr("expected layers that return no mask"));
  EXPECT_THAT(Message(Changed("[{ActivityRegularization: {l2: 0.1}}]").status()),
              HasSubstr("expected layers that do not add to the loss"));
  EXPECT_THAT(Message(Changed("[{RandomCrop: {height: 9, width: 1, }}, {Flatten: {}}, "
                              "{RandomFlip: {}}]")
                          .status()),
              HasSubstr("random_flip"));
  const StatusOr<SourcePtr> missing =
      Augment(Images(), {.field = "image", .layers = Layers("[{RandomFlip: {}}]")});
  EXPECT_EQ(Message(missing.status()), "the examples have no field image");
  const SourcePtr source = *Changed("[{RandomFlip: {}}]");
  EXPECT_EQ(Message(source
                        ->Open({{.name = "x",
                                 .array = "features",
                                 .dtype = DType::kInt64,
                                 .shape = {kHeight, kWidth, 1}}})
                        .status()),
            "data.augment: expected a model that takes features as float32, got int64");
}

}  // namespace
}  // namespace tfjob::augment
