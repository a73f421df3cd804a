#include "runtime/data/images/image_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "runtime/base/philox.h"
#include "runtime/data/images/test_folder.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"

namespace tfjob::data {
namespace {

using testing::ImageFolder;
using Files = std::vector<std::string>;

ImageFolderOptions OptionsFor(const ImageFolder& folder) {
  return {.folder = folder.path(), .image = {.resize = {.height = 2, .width = 3}}};
}

PipelineOptions Reading() {
  return {.batch_size = 4,
          .epochs = 1,
          .shuffle = false,
          .seed = 5,
          .prefetch = 2,
          .columns = {{.name = "x", .array = kFeaturesArray, .shape = {2, 3, 3}, .scale = 0.5},
                      ClassColumn(kLabelsArray, 8)}};
}

struct Drained {
  std::vector<float> first;  // the first value of each image
  std::vector<int64_t> labels;
  Status status;
};

Drained Drain(Pipeline& pipeline) {
  Drained drained;
  while (const Batch* batch = pipeline.Next()) {
    const auto rows = static_cast<size_t>(batch->size());
    const std::span<const float> pixels = batch->Find("x")->data<float>();
    for (size_t i = 0; i < rows; ++i) {
      drained.first.push_back(pixels[i * 18]);
      EXPECT_EQ(pixels[i * 18 + 17], pixels[i * 18]) << "each image has one colour";
      drained.labels.push_back(batch->Find(kLabelsArray)->data<int64_t>()[i]);
    }
  }
  drained.status = pipeline.status();
  return drained;
}

Drained ReadAll(const std::shared_ptr<const Source>& source,
                const PipelineOptions& options = Reading()) {
  const auto pipeline = Pipeline::Create(source, options);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return Drain(**pipeline);
}

Drained ReadAll(const ImageFolderOptions& options) {
  const auto source = OpenImages(options);
  if (!source.ok()) return {.first = {}, .labels = {}, .status = source.status()};
  return ReadAll(*source);
}

// Writes `count` images: image i has the grey value 2 i, and belongs to class i mod 3.
void WriteNumbered(const ImageFolder& folder, int count) {
  for (int i = 0; i < count; ++i) {
    const char number[] = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10), 0};
    folder.WriteGrey(StrCat("class", i % 3, "/", number, ".png"), static_cast<uint8_t>(2 * i));
  }
}

Files PathsIn(const ImageFolder& folder, const Files& classes = {}) {
  const StatusOr<ClassFiles> files =
      ClassFiles::List({.path = folder.path(), .classes = classes, .content = "images"});
  EXPECT_TRUE(files.ok()) << files.status();
  Files paths;
  for (int64_t i = 0; files.ok() && i < files->size(); ++i)
    paths.push_back(files->Path(i).substr(folder.path().size() + 1) + " " +
                    StrCat(files->ClassOf(i)));
  return paths;
}

TEST(ClassFiles, HaveTheOrderOfKeras) {
  const ImageFolder folder;
  for (const char* name :
       {"b/2.jpg", "b/10.jpg", "b/sub/1.png", "b/sub-2/1", "b/sub/0.JPG", "b/sub/deep/1", "B/x",
        "a b/ü.png", "a b/z.png", ".hidden/1.png", "b/.thumbs", "b/.d/1.png"})
    folder.Write(name, "x");
  folder.Write("notes.txt", "beside the classes");
  std::filesystem::create_directories(folder.path() + "/empty");
  EXPECT_EQ(PathsIn(folder),
            (Files{"B/x 0", "a b/z.png 1", "a b/ü.png 1", "b/10.jpg 2", "b/2.jpg 2",
                   "b/sub/0.JPG 2", "b/sub/1.png 2", "b/sub-2/1 2", "b/sub/deep/1 2"}));
  EXPECT_EQ(PathsIn(folder, {"empty", "b", "B"}),
            (Files{"b/10.jpg 1", "b/2.jpg 1", "b/sub/0.JPG 1", "b/sub/1.png 1", "b/sub-2/1 1",
                   "b/sub/deep/1 1", "B/x 2"}));
}

TEST(ClassFiles, LinksToClassesAndFilesAreFollowed) {
  const ImageFolder elsewhere, folder;
  elsewhere.Write("1.png", "x");
  elsewhere.Write("sub/2.png", "x");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder.path() + "/linked");
  folder.Write("own/3.png", "x");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder.path() + "/own/loop");
  std::filesystem::create_symlink(elsewhere.path() + "/1.png", folder.path() + "/own/4.png");
  EXPECT_EQ(PathsIn(folder),
            (Files{"linked/1.png 0", "linked/sub/2.png 0", "own/3.png 1", "own/4.png 1"}));
}

TEST(ClassFiles, ThatAreMissing) {
  const ImageFolder folder;
  const auto error = [&](const Files& classes = {}) {
    const std::string text(
        Message(ClassFiles::List({.path = folder.path(), .classes = classes, .content = "images"})
                    .status()));
    return text.substr(std::min(text.size(), folder.path().size()));
  };
  EXPECT_EQ(error(),
            ": expected a folder for each class, with the images of the class, but there are no "
            "folders");
  std::filesystem::create_directories(folder.path() + "/cats");
  std::filesystem::create_directories(folder.path() + "/dogs");
  EXPECT_EQ(error(),
            ": expected images in the folders of the classes (cats, …), but they have no files");
  EXPECT_EQ(error({"cats", "dgos"}),
            ": expected a folder dgos, which classes names, but there is none; did you mean "
            "\"dogs\"?");
  EXPECT_EQ(ClassFiles::List({.path = folder.path() + "/x"}).status().code(),
            StatusCode::kNotFound);
}

TEST(Images, AreReadWithTheirLabels) {
  const ImageFolder folder;
  WriteNumbered(folder, 11);
  const auto source = OpenImages(OptionsFor(folder));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), 11);
  EXPECT_FALSE((*source)->in_memory());
  ASSERT_EQ((*source)->fields().size(), 2u);
  EXPECT_EQ((*source)->fields()[0].shape, Shape({2, 3, 3}));
  EXPECT_TRUE((*source)->Describe().starts_with(folder.path() + "; 3 classes; "))
      << (*source)->Describe();
  const Drained drained = ReadAll(*source);
  ASSERT_TRUE(drained.status.ok()) << drained.status;
  EXPECT_EQ(drained.first, (std::vector<float>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8}));
  EXPECT_EQ(drained.labels, (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2}));
}

// Returns a table of the images that WriteNumbered writes, in the order of the files.
std::shared_ptr<const Source> TableOf(int64_t count) {
  Tensor pixels(DType::kFloat32, {count, 2, 3, 3});
  Tensor labels(DType::kInt64, {count});
  size_t row = 0;
  for (int64_t label = 0; label < 3; ++label) {
    for (int64_t i = label; i < count; i += 3, ++row) {
      std::ranges::fill(pixels.data<float>().subspan(row * 18, 18), static_cast<float>(2 * i));
      labels.data<int64_t>()[row] = label;
    }
  }
  return TableSource(std::make_shared<const Dataset>(
      Dataset{.arrays = {{kFeaturesArray, "x", pixels}, {kLabelsArray, "y", labels}}}));
}

TEST(Images, HaveTheOrderSharesAndPositionsOfATable) {
  const ImageFolder folder;
  WriteNumbered(folder, 23);
  ImageFolderOptions opening = OptionsFor(folder);
  for (const int threads : {1, 3}) {
    opening.threads = threads;
    const auto source = OpenImages(opening);
    ASSERT_TRUE(source.ok()) << source.status();
    for (const int64_t global_batch : {0, 6}) {
      for (int64_t worker = 0; worker < 2; ++worker) {
        PipelineOptions options = Reading();
        options.shuffle = true;
        options.epochs = 2;
        options.global_batch = global_batch;
        options.worker = worker;
        options.workers = 2;
        const Drained images = ReadAll(*source, options), table = ReadAll(TableOf(23), options);
        ASSERT_TRUE(images.status.ok()) << images.status;
        EXPECT_EQ(images.first, table.first);
        EXPECT_EQ(images.labels, table.labels);
        options.start = {.epoch = 1, .batch = 1};
        const Drained rest = ReadAll(*source, options);
        ASSERT_FALSE(rest.first.empty());
        EXPECT_TRUE(std::equal(rest.first.rbegin(), rest.first.rend(), images.first.rbegin()));
      }
    }
  }
}

TEST(Images, BecomeTheTypesOfTheModel) {
  const ImageFolder folder;
  WriteNumbered(folder, 5);
  const auto source = OpenImages(OptionsFor(folder));
  ASSERT_TRUE(source.ok()) << source.status();
  PipelineOptions options = Reading();
  options.batch_size = 5;
  options.columns = {
      {.name = "b", .array = kFeaturesArray, .dtype = DType::kUInt8, .shape = {2, 3, 3}},
      {.name = "f", .array = kFeaturesArray, .shape = {18}},
      OneHotColumn(kLabelsArray, 3)};
  const auto pipeline = Pipeline::Create(*source, options);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const Batch* batch = (*pipeline)->Next();
  ASSERT_NE(batch, nullptr) << (*pipeline)->status();
  EXPECT_EQ(batch->Find("b")->data<uint8_t>()[4 * 18], 4);
  EXPECT_EQ(batch->Find("f")->data<float>()[4 * 18 - 1], 8);
  const std::span<const float> rows = batch->Find(kLabelsArray)->data<float>();
  EXPECT_EQ(std::vector<float>(rows.begin() + 9, rows.end()),
            (std::vector<float>{0, 1, 0, 0, 0, 1}));
  // The column has too few classes, as if the model had too few outputs.
  options.columns = {ClassColumn(kLabelsArray, 2)};
  EXPECT_TRUE(Message(ReadAll(*source, options).status)
                  .starts_with(folder.path() + "/class2/02.png: label 2 is out of range"))
      << ReadAll(*source, options).status;
}

TEST(Images, ThatAreDamagedAreErrorsOrLeftOut) {
  const ImageFolder folder;
  WriteNumbered(folder, 9);
  const std::string png = testing::WritePng(testing::Gradient(2, 3, 3));
  folder.Write("class1/04.png", png.substr(0, 60));
  folder.Write("class1/notes.txt", "hello");
  folder.Write("class2/empty.png", "");
  ImageFolderOptions options = OptionsFor(folder);
  for (const int threads : {1, 3}) {
    options.threads = threads;
    options.skip_damaged = false;
    const Status damaged = ReadAll(options).status;
    EXPECT_EQ(damaged.code(), StatusCode::kDataLoss);
    EXPECT_EQ(Message(damaged),
              StrCat(folder.path(), "/class1/04.png: the PNG image is damaged: it ends too early; ",
                     "replace or remove the file, or set on_damaged: skip to leave out what is ",
                     "damaged"));
    options.skip_damaged = true;
    const auto source = OpenImages(options);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ((*source)->LeftOut(),
              StrCat("3 damaged files are left out of the data; the first: ", folder.path(),
                     "/class1/04.png: the PNG image is damaged: it ends too early"));
    const Drained left = ReadAll(*source);
    ASSERT_TRUE(left.status.ok()) << left.status;
    EXPECT_EQ(left.first, (std::vector<float>{0, 3, 6, 1, 7, 2, 5, 8}));
    EXPECT_EQ(left.labels, (std::vector<int64_t>{0, 0, 0, 1, 1, 2, 2, 2}));
  }
}

TEST(Images, OfWhichNoneIsIntact) {
  const ImageFolder folder;
  const std::string path = folder.Write("a/1.png", "no image");
  ImageFolderOptions options = OptionsFor(folder);
  options.skip_damaged = true;
  EXPECT_EQ(Message(OpenImages(options).status()),
            StrCat(folder.path(), ": none of the 1 files is an intact image; the first: ", path,
                   ": expected a JPEG or PNG image, got bytes that begin with \"no image\""));
}

TEST(Images, MustNotChange) {
  const ImageFolder folder;
  WriteNumbered(folder, 3);
  const auto source = OpenImages(OptionsFor(folder));
  ASSERT_TRUE(source.ok()) << source.status();
  const std::string path = folder.Write("class1/01.png", "replaced");
  const Status changed = ReadAll(*source).status;
  EXPECT_EQ(changed.code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Message(changed).starts_with(
      path + ": the file has changed since this task listed it: it had "))
      << changed;
  std::filesystem::remove(path);
  EXPECT_EQ(ReadAll(*source).status.code(), StatusCode::kNotFound);
}

TEST(Images, HaveAFingerprint) {
  const ImageFolder folder, same;
  WriteNumbered(folder, 6);
  WriteNumbered(same, 6);
  const auto fingerprint = [](const ImageFolderOptions& options) {
    const auto source = OpenImages(options);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? (*source)->fingerprint() : 0;
  };
  const uint64_t first = fingerprint(OptionsFor(folder));
  EXPECT_EQ(fingerprint(OptionsFor(same)), first) << "the path does not matter";
  ImageFolderOptions options = OptionsFor(same);
  options.image.channels = 1;
  EXPECT_NE(fingerprint(options), first);
  options = OptionsFor(same);
  options.classes = {"class0", "class2", "class1"};
  EXPECT_NE(fingerprint(options), first);
  options.classes.clear();
  std::filesystem::rename(same.path() + "/class1/01.png", same.path() + "/class1/02.png");
  EXPECT_NE(fingerprint(options), first) << "a name differs";
  std::filesystem::rename(same.path() + "/class1/02.png", same.path() + "/class1/01.png");
  EXPECT_EQ(fingerprint(options), first);
  same.Write("class1/01.png", "another size");
  EXPECT_NE(fingerprint(options), first);
}

// Checks that a file with random changes can be read, or that the error names the file.
TEST(Images, DamagedAtRandomAreNamed) {
  PhiloxStream random(11);
  const std::string images[] = {testing::WriteJpeg(testing::Gradient(16, 16, 3)),
                                testing::WritePng(testing::Gradient(16, 16, 3))};
  const ImageFolder folder;
  int errors = 0;
  for (int i = 0; i < 200; ++i) {
    std::string bytes = images[i % 2];
    if (i % 4 < 2) {
      bytes.resize(random.Below(static_cast<uint32_t>(bytes.size())));
    } else {
      bytes[random.Below(static_cast<uint32_t>(bytes.size()))] ^= static_cast<char>(1 + i);
    }
    const std::string path = folder.Write("a/image", bytes);
    const auto source = OpenImages(OptionsFor(folder));
    ASSERT_TRUE(source.ok()) << source.status();
    PipelineOptions options = Reading();
    options.columns.resize(1);
    const auto pipeline = Pipeline::Create(*source, options);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    while ((*pipeline)->Next() != nullptr) {
    }
    const Status& status = (*pipeline)->status();
    if (status.ok()) {
      EXPECT_EQ(i % 4, 2) << "only JPEG has no checksums";
      continue;
    }
    ++errors;
    EXPECT_TRUE(Message(status).starts_with(path + ": ")) << status;
  }
  EXPECT_GE(errors, 150);
}

}  // namespace
}  // namespace tfjob::data
