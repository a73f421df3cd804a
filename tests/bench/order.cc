// Implements the benchmark case order: reads a TFRecord file with very many examples in random
// order, and measures the anonymous memory of the process (RssAnon). The order is a keyed
// permutation and the index of the records is a mapped file, so that neither needs anonymous
// memory.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "runtime/data/pipeline.h"
#include "runtime/data/tfrecord/test_example.h"
#include "runtime/data/tfrecord/tfrecord.h"
#include "runtime/io/record.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct Options {
  int64_t examples = 100'000'000;
  int64_t read = 1'000'000;  // examples to read in random order
  int64_t batch = 128;
  double at_most_mb = 64;
  std::string folder = "/tmp";
};

constexpr int64_t kDistinct = 1 << 16;       // the values repeat, so that writing is fast
constexpr int64_t kBatchesPerSample = 64;    // batches between two looks at the memory
constexpr size_t kWrittenAtOnce = 16 << 20;  // bytes

// Returns the anonymous memory of the process in MB.
double AnonymousMb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) / 1024;
  }
  return 0;
}

Status Write(const std::string& path, const Options& options) {
  std::string records;
  for (int64_t i = 0; i < kDistinct; ++i)
    io::AppendRecord(
        data::testing::ExampleOf({{"x", data::testing::Int64Feature({kDistinct + i})}}), records);
  const size_t record = records.size() / kDistinct;  // all have the same size
  std::string chunk;
  while (chunk.size() < kWrittenAtOnce) chunk += records;
  std::ofstream file(path, std::ios::binary);
  for (auto left = record * static_cast<size_t>(options.examples); left > 0;) {
    const size_t now = std::min(left, chunk.size());
    file.write(chunk.data(), static_cast<std::streamsize>(now));
    left -= now;
  }
  file.close();
  return file ? OkStatus() : ResourceExhausted("cannot write ", path);
}

StatusOr<std::shared_ptr<const data::Source>> Open(const std::string& path,
                                                   const Options& options) {
  Stopwatch watch;
  ASSIGN_OR_RETURN(auto source,
                   data::OpenTfRecords({.files = {path},
                                        .features = {{.name = "x", .dtype = DType::kInt64}},
                                        .fields = {{"x", "x"}},
                                        .cache_dir = options.folder}));
  const Times times = watch.Elapsed();
  Report("order")
      .Add("what", "index")
      .Add("examples", source->size())
      .Add("examples_per_s", static_cast<double>(source->size()) / times.wall_s)
      .Add("anonymous_mb", AnonymousMb())
      .Print(times);
  return source;
}

// Reads examples, and returns the maximum of the process's anonymous memory during that time.
StatusOr<double> Read(const std::shared_ptr<const data::Source>& source, const Options& options) {
  ASSIGN_OR_RETURN(const auto pipeline,
                   data::Pipeline::Create(
                       source, {.batch_size = options.batch,
                                .epochs = 1,
                                .prefetch = 0,
                                .columns = {{.name = "x", .array = "x", .dtype = DType::kInt64}}}));
  Stopwatch watch;
  int64_t examples = 0, batches = 0;
  double most_mb = AnonymousMb();
  while (examples < options.read) {
    const data::Batch* batch = pipeline->Next();
    if (batch == nullptr) break;
    examples += batch->size();
    if (++batches % kBatchesPerSample == 0) most_mb = std::max(most_mb, AnonymousMb());
  }
  RETURN_IF_ERROR(pipeline->status());
  const Times times = watch.Elapsed();
  most_mb = std::max(most_mb, AnonymousMb());
  Report("order")
      .Add("what", "shuffled")
      .Add("examples", source->size())
      .Add("read", examples)
      .Add("examples_per_s", static_cast<double>(examples) / times.wall_s)
      .Add("anonymous_mb", most_mb)
      .Add("at_most_mb", options.at_most_mb)
      .Print(times);
  return most_mb;
}

Status Run(const std::string& path, const Options& options) {
  RETURN_IF_ERROR(Write(path, options));
  ASSIGN_OR_RETURN(const auto source, Open(path, options));
  ASSIGN_OR_RETURN(const double most_mb, Read(source, options));
  if (most_mb <= options.at_most_mb) return OkStatus();
  return ResourceExhausted("the process had ", most_mb,
                           " MB of anonymous memory; expected at most ", options.at_most_mb);
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::Options options;
  CLI::App app("Reading very many indexed examples in random order", "order");
  app.add_option("--examples", options.examples, "Number of examples")->capture_default_str();
  app.add_option("--read", options.read, "Examples to read")->capture_default_str();
  app.add_option("--batch", options.batch, "Examples in a batch")->capture_default_str();
  app.add_option("--at-most-mb", options.at_most_mb, "Fails if more anonymous memory is used")
      ->capture_default_str();
  app.add_option("--folder", options.folder, "Folder of the file and its index")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const std::string path = tfjob::StrCat(options.folder, "/tfjob-bench-", getpid(), ".order");
  const tfjob::Status status = tfjob::bench::Run(path, options);
  std::filesystem::remove(path);
  if (status.ok()) return 0;
  std::fprintf(stderr, "order: %s\n", status.ToString().c_str());
  return 1;
}
