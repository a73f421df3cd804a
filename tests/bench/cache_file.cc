// Implements the benchmark case cache-file: writing the examples of JSON lines to a cache file and
// reading them from this file, compared with parsing the lines.
#include "runtime/data/operators/cache_file.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "runtime/data/jsonl/jsonl.h"
#include "runtime/data/pipeline.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct CacheOptions {
  int64_t examples = 100'000;
  int64_t values = 64;  // values per example
  int64_t batch = 128;
  std::string folder = "/tmp";
};

Status WriteLines(const std::string& path, const CacheOptions& options) {
  std::ofstream file(path, std::ios::binary);
  for (int64_t i = 0; i < options.examples; ++i) {
    file << "{\"x\": [";
    for (int64_t k = 0; k < options.values; ++k) file << (k > 0 ? ", " : "") << (i + k) % 997 / 8.0;
    file << "]}\n";
  }
  file.close();
  return file ? OkStatus() : ResourceExhausted("cannot write ", path);
}

Status Read(const data::SourcePtr& source, const char* what, bool shuffle,
            const CacheOptions& options) {
  ASSIGN_OR_RETURN(
      const auto pipeline,
      data::Pipeline::Create(
          source, {.batch_size = options.batch,
                   .epochs = 1,
                   .shuffle = shuffle,
                   .prefetch = 0,
                   .columns = {{.name = "x", .array = "x", .shape = {options.values}}}}));
  Stopwatch watch;
  int64_t examples = 0;
  while (const data::Batch* batch = pipeline->Next()) examples += batch->size();
  RETURN_IF_ERROR(pipeline->status());
  const Times times = watch.Elapsed();
  Report("cache-file")
      .Add("what", what)
      .Add("order", shuffle ? "shuffled" : "in order")
      .Add("examples_per_s", static_cast<double>(examples) / times.wall_s)
      .Print(times);
  return OkStatus();
}

Status WriteAndRead(const std::string& folder, const CacheOptions& options) {
  std::filesystem::create_directories(folder);
  const std::string lines = folder + "/examples.jsonl", cache = folder + "/examples.cache";
  RETURN_IF_ERROR(WriteLines(lines, options));
  ASSIGN_OR_RETURN(const data::SourcePtr source,
                   data::OpenJsonLines({.files = {lines},
                                        .features = {{.name = "x", .shape = {options.values}}},
                                        .fields = {{"x", "x"}}}));
  for (const bool shuffle : {false, true}) RETURN_IF_ERROR(Read(source, "lines", shuffle, options));
  Stopwatch watch;
  ASSIGN_OR_RETURN(const data::SourcePtr cached, data::CacheInFile(source, cache));
  const Times times = watch.Elapsed();
  if (cached == source) return ResourceExhausted("cannot write ", cache);
  Report("cache-file")
      .Add("what", "write")
      .Add("bytes", std::filesystem::file_size(cache))
      .Add("examples_per_s", static_cast<double>(options.examples) / times.wall_s)
      .Print(times);
  for (const bool shuffle : {false, true}) RETURN_IF_ERROR(Read(cached, "cache", shuffle, options));
  return OkStatus();
}

int Main(int argc, char** argv) {
  CacheOptions options;
  CLI::App app("Writing and reading a cache file of examples", "cache_file");
  app.add_option("--examples", options.examples, "Number of examples")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--values", options.values, "Values per example")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "Examples in a batch")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--folder", options.folder, "Folder of the files")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const std::string folder = StrCat(options.folder, "/tfjob-bench-", getpid());
  const Status status = WriteAndRead(folder, options);
  std::filesystem::remove_all(folder);
  if (status.ok()) return 0;
  std::fprintf(stderr, "cache_file: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
