// Tests features of records that are images.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/data/images/decode/test_images.h"
#include "runtime/data/tfrecord/test_records.h"

namespace tfjob::data {
namespace {

using testing::BytesFeature;
using testing::ExampleOf;
using testing::Folder;
using testing::Int64Feature;

// Returns a PNG image of 4 × 6 pixels, all of the same grey. The tests resize it to 2 × 3.
std::string GreyPng(uint8_t grey) {
  return testing::WritePng(testing::Uniform(4, 6, {grey, grey, grey}));
}

RecordOptions OptionsFor(const std::string& path) {
  const ImageOptions image{.resize = {.height = 2, .width = 3}};
  return {.files = {path},
          .features = {{.name = "image", .shape = {2, 3, 3}, .image = image},
                       {.name = "label", .dtype = DType::kInt64}},
          .fields = {{"x", "image"}, {"y", "label"}}};
}

struct Read {
  std::vector<float> first;  // the first value of each image
  std::vector<int64_t> labels;
  std::string left_out;
  Status status;
};

Read ReadAll(const RecordOptions& options) {
  Read read;
  const auto source = OpenTfRecords(options);
  if (!source.ok()) return {.first = {}, .labels = {}, .left_out = {}, .status = source.status()};
  read.left_out = (*source)->LeftOut();
  const auto pipeline = Pipeline::Create(
      *source, {.batch_size = 4,
                .epochs = 1,
                .shuffle = false,
                .prefetch = 0,
                .columns = {{.name = "x", .array = "x", .shape = {2, 3, 3}, .scale = 2},
                            {.name = "y", .array = "y", .dtype = DType::kInt64}}});
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  while (const Batch* batch = (*pipeline)->Next()) {
    for (size_t i = 0; i < static_cast<size_t>(batch->size()); ++i) {
      read.first.push_back(batch->Find("x")->data<float>()[18 * i]);
      EXPECT_EQ(batch->Find("x")->data<float>()[18 * i + 17], read.first.back());
      read.labels.push_back(batch->Find("y")->data<int64_t>()[i]);
    }
  }
  read.status = (*pipeline)->status();
  return read;
}

// Returns a record that contains this image and the label `number`.
std::string RecordOf(const std::string& image, int64_t number) {
  std::string record;
  io::AppendRecord(ExampleOf({{"image", BytesFeature({image})}, {"label", Int64Feature({number})}}),
                   record);
  return record;
}

TEST(ImageFeature, IsDecodedAndResized) {
  const Folder folder;
  std::string content;
  std::vector<float> first;
  std::vector<int64_t> labels;
  for (int i = 0; i < 10; ++i) {
    content += RecordOf(GreyPng(static_cast<uint8_t>(3 * i)), i);
    first.push_back(static_cast<float>(6 * i));
    labels.push_back(i);
  }
  RecordOptions options = OptionsFor(folder.Write("a", content));
  for (const int threads : {1, 3}) {
    options.threads = threads;
    const Read read = ReadAll(options);
    ASSERT_TRUE(read.status.ok()) << read.status;
    EXPECT_EQ(read.first, first);
    EXPECT_EQ(read.labels, labels);
  }
}

// Reads with so many threads that each may keep only one file open at a time.
TEST(ImageFeature, IsReadFromMoreFilesThanAreOpen) {
  const Folder folder;
  std::vector<float> first;
  for (int i = 0; i < 100; ++i) {
    folder.Write(StrCat("part-", 100 + i), RecordOf(GreyPng(static_cast<uint8_t>(i)), i));
    first.push_back(static_cast<float>(2 * i));
  }
  RecordOptions options = OptionsFor(folder.path() + "/part-*");
  for (const int threads : {1, 65}) {
    options.threads = threads;
    const Read read = ReadAll(options);
    ASSERT_TRUE(read.status.ok()) << read.status;
    EXPECT_EQ(read.first, first);
  }
}

TEST(ImageFeature, ThatIsDamagedIsAnErrorOrLeftOut) {
  const Folder folder;
  const std::string before = RecordOf(GreyPng(1), 1);
  const std::string path = folder.Write("a", before + RecordOf(GreyPng(2).substr(0, 40), 2) +
                                                 RecordOf("no", 3) + RecordOf(GreyPng(4), 4));
  const std::string message =
      StrCat(path, ": record at byte ", before.size(),
             ": feature image: the PNG image is damaged: it ends too early");
  for (const int threads : {1, 3}) {
    RecordOptions options = OptionsFor(path);
    options.threads = threads;
    const Read failed = ReadAll(options);
    EXPECT_EQ(failed.status.code(), StatusCode::kDataLoss);
    EXPECT_EQ(Message(failed.status),
              message + "; replace the file, or set on_damaged: skip to leave out what is damaged");
    options.skip_damaged = true;
    const Read left = ReadAll(options);
    ASSERT_TRUE(left.status.ok()) << left.status;
    EXPECT_EQ(left.left_out,
              StrCat("2 damaged places are left out of the data; the first: ", message));
    EXPECT_EQ(left.labels, (std::vector<int64_t>{1, 4}));
  }
}

TEST(ImageFeature, MustBeOneString) {
  const Folder folder;
  const auto error = [&](const std::string& feature) {
    std::string record;
    io::AppendRecord(ExampleOf({{"image", feature}, {"label", Int64Feature({1})}}), record);
    const std::string path = folder.Write("a", record);
    const std::string text(Message(ReadAll(OptionsFor(path)).status));
    const std::string start = path + ": record at byte 0: feature image: ";
    return text.starts_with(start) ? text.substr(start.size()) : text;
  };
  EXPECT_EQ(error(Int64Feature({1})), "expected one string in a bytes_list, got an int64_list");
  EXPECT_EQ(error(BytesFeature({"a", "b"})), "expected one string in a bytes_list, got 2");
  EXPECT_TRUE(
      error(BytesFeature({"GIF89a"})).starts_with("expected a JPEG or PNG image, got a GIF image"));
}

TEST(ImageFeature, IsPartOfTheFingerprint) {
  const Folder folder;
  RecordOptions options = OptionsFor(folder.Write("a", RecordOf(GreyPng(1), 1)));
  const auto fingerprint = [&] { return (*OpenTfRecords(options))->fingerprint(); };
  const uint64_t bilinear = fingerprint();
  options.features[0].image->resize.method = Resize::kNearest;
  EXPECT_NE(fingerprint(), bilinear);
}

}  // namespace
}  // namespace tfjob::data
