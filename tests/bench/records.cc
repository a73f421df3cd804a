#include "tests/bench/records.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "runtime/data/pipeline.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

Status Write(const std::string& path, const RecordsCase& records, const RecordsOptions& options) {
  std::ofstream file(path, std::ios::binary);
  for (int64_t i = 0; i < options.examples; ++i) file << records.record(i, options);
  file.close();
  return file ? OkStatus() : ResourceExhausted(StrCat("cannot write ", path));
}

Status Read(const RecordsCase& records, const std::shared_ptr<const data::Source>& source,
            bool shuffle, const RecordsOptions& options) {
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
  Report(records.name)
      .Add("what", shuffle ? "shuffled" : "in order")
      .Add("features", options.features)
      .Add("examples", examples)
      .Add("examples_per_s", static_cast<double>(examples) / times.wall_s)
      .Print(times);
  return OkStatus();
}

Status IndexAndRead(const std::string& path, const RecordsCase& records,
                    const RecordsOptions& options) {
  data::RecordOptions opening{.files = {path}};
  for (int64_t f = 0; f < options.features; ++f) {
    opening.features.push_back(
        {.name = FeatureName(f), .dtype = f % 2 == 0 ? DType::kInt64 : DType::kFloat32});
    opening.fields.push_back({FeatureName(f), FeatureName(f)});
  }
  Stopwatch watch;
  ASSIGN_OR_RETURN(const auto source, records.open(opening));
  const Times times = watch.Elapsed();
  Report(records.name)
      .Add("what", "index")
      .Add("examples", source->size())
      .Add("examples_per_s", static_cast<double>(source->size()) / times.wall_s)
      .Print(times);
  RETURN_IF_ERROR(Read(records, source, /*shuffle=*/false, options));
  return Read(records, source, /*shuffle=*/true, options);
}

}  // namespace

std::string FeatureName(int64_t feature) {
  return StrCat("feature_", feature);
}

int RecordsMain(int argc, char** argv, const RecordsCase& records) {
  RecordsOptions options;
  CLI::App app("Reading files of records into batches", records.name);
  app.add_option("--examples", options.examples, "Number of examples")->capture_default_str();
  app.add_option("--features", options.features, "Features of an example")->capture_default_str();
  app.add_option("--batch", options.batch, "Examples in a batch")->capture_default_str();
  app.add_option("--folder", options.folder, "Folder of the file")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const std::string path = StrCat(options.folder, "/tfjob-bench-", getpid(), ".", records.name);
  Status status = Write(path, records, options);
  if (status.ok()) status = IndexAndRead(path, records, options);
  unlink(path.c_str());
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", records.name.c_str(), status.ToString().c_str());
  return 1;
}

}  // namespace tfjob::bench
