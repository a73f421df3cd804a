// Implements the benchmark case images: decodes and resizes JPEG images from a TFRecord file and
// from a folder, and puts them into batches.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "runtime/data/images/decode/test_images.h"
#include "runtime/data/images/image_source.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/tfrecord/test_example.h"
#include "runtime/data/tfrecord/tfrecord.h"
#include "runtime/io/record.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct ImagesOptions {
  int64_t images = 200;
  int64_t epochs = 5;
  int64_t size = 224;
  int64_t batch = 32;
  int threads = 1;
  std::string folder = "/tmp";
  std::string first_batch;  // the file for the first batch; "": none
};

// Returns an image with waves and noise. tests/bench/peers/tensorflow_images.py creates the same
// image.
std::string JpegOf(uint32_t number) {
  data::testing::TestImage image{.height = 375, .width = 500};
  for (uint32_t y = 0; y < image.height; ++y) {
    for (uint32_t x = 0; x < image.width; ++x) {
      for (uint32_t c = 0; c < 3; ++c) {
        const uint32_t hash =
            (x * 7919 + y * 104729 + c * 1299709 + number * 15485863) * 2654435761;
        const double wave = std::sin((x * (number % 7 + 3) + y * (c + 2)) / 40.0);
        const double value =
            128 + 70 * wave + 20 * std::sin(x * y / 900.0) + (hash >> 16) % 25 - 12;
        image.values.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return data::testing::WriteJpeg(image, {.quality = 90, .subsampled = true});
}

// Writes the images to FOLDER/images.tfrecord and to FOLDER/classes/class/.
Status Write(const std::string& folder, const ImagesOptions& options) {
  const std::string in_class = folder + "/classes/class";
  std::filesystem::create_directories(in_class);
  std::string records;
  for (int64_t i = 0; i < options.images; ++i) {
    const std::string jpeg = JpegOf(static_cast<uint32_t>(i));
    io::AppendRecord(data::testing::ExampleOf({{"image", data::testing::BytesFeature({jpeg})}}),
                     records);
    std::ofstream(StrCat(in_class, "/", i, ".jpg"), std::ios::binary) << jpeg;
  }
  std::ofstream file(folder + "/images.tfrecord", std::ios::binary);
  file << records;
  return file.flush() ? OkStatus() : ResourceExhausted("cannot write to ", folder);
}

// Writes the first batch of `source` as float32 values to the file options.first_batch, and the
// TFRecord file from which it was read next to it, so that a peer can decode the same bytes.
Status KeepFirstBatch(const std::shared_ptr<const data::Source>& source, const std::string& records,
                      const ImagesOptions& options) {
  const data::Field& field = source->fields()[0];
  ASSIGN_OR_RETURN(
      const auto pipeline,
      data::Pipeline::Create(
          source, {.batch_size = options.batch,
                   .epochs = 1,
                   .shuffle = false,
                   .prefetch = 0,
                   .columns = {{.name = field.name, .array = field.name, .shape = field.shape}}}));
  const data::Batch* batch = pipeline->Next();
  if (batch == nullptr) return pipeline->status();
  const std::span<const std::byte> bytes = std::as_const(batch->tensors[0].value).bytes();
  std::ofstream file(options.first_batch, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) return ResourceExhausted("cannot write ", options.first_batch);
  std::filesystem::copy_file(records, options.first_batch + ".tfrecord",
                             std::filesystem::copy_options::overwrite_existing);
  return OkStatus();
}

Status Read(const std::shared_ptr<const data::Source>& source, const char* what,
            const ImagesOptions& options) {
  const data::Field& field = source->fields()[0];
  const auto pipeline = data::Pipeline::Create(
      source, {.batch_size = options.batch,
               .epochs = options.epochs,
               .shuffle = false,
               .prefetch = 0,
               .columns = {{.name = field.name, .array = field.name, .shape = field.shape}}});
  RETURN_IF_ERROR(pipeline.status());
  Stopwatch watch;
  int64_t images = 0;
  while (const data::Batch* batch = (*pipeline)->Next()) images += batch->size();
  RETURN_IF_ERROR((*pipeline)->status());
  const Times times = watch.Elapsed();
  Report("images")
      .Add("what", what)
      .Add("images", images)
      .Add("threads", options.threads)
      .Add("images_per_s", static_cast<double>(images) / times.wall_s)
      .Print(times);
  return OkStatus();
}

Status WriteAndRead(const std::string& folder, const ImagesOptions& options) {
  RETURN_IF_ERROR(Write(folder, options));
  const data::ImageOptions image{.resize = {.height = options.size, .width = options.size}};
  ASSIGN_OR_RETURN(const auto records,
                   data::OpenTfRecords({.files = {folder + "/images.tfrecord"},
                                        .features = {{.name = "image",
                                                      .shape = {options.size, options.size, 3},
                                                      .image = image}},
                                        .fields = {{"image", "image"}},
                                        .threads = options.threads}));
  if (!options.first_batch.empty())
    RETURN_IF_ERROR(KeepFirstBatch(records, folder + "/images.tfrecord", options));
  RETURN_IF_ERROR(Read(records, "tfrecord", options));
  ASSIGN_OR_RETURN(const auto files, data::OpenImages({.folder = folder + "/classes",
                                                       .image = image,
                                                       .threads = options.threads}));
  return Read(files, "folder", options);
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::ImagesOptions options;
  CLI::App app("Decoding JPEG images of 500 × 375 pixels into batches", "images");
  app.add_option("--images", options.images, "Number of images")->capture_default_str();
  app.add_option("--epochs", options.epochs, "How often they are read")->capture_default_str();
  app.add_option("--size", options.size, "Height and width after resizing")->capture_default_str();
  app.add_option("--batch", options.batch, "Images in a batch")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that decode")->capture_default_str();
  app.add_option("--folder", options.folder, "Folder of the files")->capture_default_str();
  app.add_option("--first-batch", options.first_batch,
                 "Writes the first batch to this file, so --peer tensorflow can compare it");
  CLI11_PARSE(app, argc, argv);
  const std::string folder = tfjob::StrCat(options.folder, "/tfjob-bench-", getpid());
  const tfjob::Status status = tfjob::bench::WriteAndRead(folder, options);
  std::filesystem::remove_all(folder);
  if (status.ok()) return 0;
  std::fprintf(stderr, "images: %s\n", status.ToString().c_str());
  return 1;
}
