// Implements the benchmark case tfrecord: the rate at which TFRecord files of tf.train.Example are
// indexed and read into batches, both in file order and shuffled.
#include "runtime/data/tfrecord/tfrecord.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "runtime/data/pipeline.h"
#include "runtime/data/tfrecord/test_example.h"
#include "runtime/io/record.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct Options {
  int64_t examples = 500'000;
  int64_t features = 20;  // half of them int64, half float, with one value each
  int64_t batch = 128;
  std::string folder = "/tmp";
};

std::string NameOf(int64_t feature) {
  return StrCat("feature_", feature);
}

void Write(const std::string& path, const Options& options) {
  std::ofstream file(path, std::ios::binary);
  for (int64_t i = 0; i < options.examples; ++i) {
    std::vector<std::pair<std::string, std::string>> features;
    for (int64_t f = 0; f < options.features; ++f) {
      features.emplace_back(NameOf(f), f % 2 == 0
                                           ? data::testing::Int64Feature({i * f})
                                           : data::testing::FloatFeature({static_cast<float>(i)}));
    }
    std::string record;
    io::AppendRecord(data::testing::ExampleOf(features), record);
    file << record;
  }
}

Status Read(const std::shared_ptr<const data::Source>& source, bool shuffle,
            const Options& options) {
  data::PipelineOptions reading{
      .batch_size = options.batch, .epochs = 1, .shuffle = shuffle, .prefetch = 0};
  for (const data::Field& field : source->fields())
    reading.columns.push_back({.name = field.name, .array = field.name, .dtype = field.dtype});
  ASSIGN_OR_RETURN(const auto pipeline, data::Pipeline::Create(source, reading));
  Stopwatch watch;
  int64_t examples = 0;
  while (const data::Batch* batch = pipeline->Next()) examples += batch->size();
  RETURN_IF_ERROR(pipeline->status());
  const Times times = watch.Elapsed();
  Report("tfrecord")
      .Add("what", shuffle ? "shuffled" : "in order")
      .Add("features", options.features)
      .Add("examples", examples)
      .Add("examples_per_s", static_cast<double>(examples) / times.wall_s)
      .Print(times);
  return OkStatus();
}

Status Run(const Options& options) {
  const std::string path = StrCat(options.folder, "/tfjob-bench-", getpid(), ".tfrecord");
  Write(path, options);
  data::RecordOptions opening{.files = {path}};
  for (int64_t f = 0; f < options.features; ++f) {
    opening.features.push_back(
        {.name = NameOf(f), .dtype = f % 2 == 0 ? DType::kInt64 : DType::kFloat32});
    opening.fields.push_back({NameOf(f), NameOf(f)});
  }
  const auto read = [&]() -> Status {
    Stopwatch watch;
    ASSIGN_OR_RETURN(const auto source, data::OpenTfRecords(opening));
    const Times times = watch.Elapsed();
    Report("tfrecord")
        .Add("what", "index")
        .Add("examples", source->size())
        .Add("examples_per_s", static_cast<double>(source->size()) / times.wall_s)
        .Print(times);
    RETURN_IF_ERROR(Read(source, /*shuffle=*/false, options));
    return Read(source, /*shuffle=*/true, options);
  };
  const Status status = read();
  unlink(path.c_str());
  return status;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Reading TFRecord files of tf.train.Example", "tfrecord");
  app.add_option("--examples", options.examples, "Number of examples")->capture_default_str();
  app.add_option("--features", options.features, "Features of an example")->capture_default_str();
  app.add_option("--batch", options.batch, "Examples in a batch")->capture_default_str();
  app.add_option("--folder", options.folder, "Folder of the file")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "tfrecord: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
