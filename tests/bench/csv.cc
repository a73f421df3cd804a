// Implements the benchmark case csv: reads a CSV file of numbers into batches.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/csv/csv_numbers.h"
#include "runtime/data/pipeline.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct Options {
  int64_t columns = 50;  // the last one contains the labels
  int64_t bytes = int64_t{1} << 30;
  int64_t batch = 128;
  std::string folder = "/tmp";
};

constexpr size_t kWrittenAtOnce = 8 << 20;  // bytes; the rows repeat, so that writing is fast

// Returns rows of numbers between −10 and 10 with six decimals. tests/bench/peers/csv_case.py
// writes rows of the same form.
std::string Rows(const Options& options) {
  std::string rows;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> number(-10, 10);
  char digits[32];
  while (rows.size() < kWrittenAtOnce) {
    for (int64_t c = 0; c < options.columns; ++c) {
      const auto end =
          std::to_chars(digits, digits + sizeof digits, number(random), std::chars_format::fixed, 6)
              .ptr;
      rows.append(digits, end).push_back(c + 1 < options.columns ? ',' : '\n');
    }
  }
  return rows;
}

Status Write(const std::string& path, const Options& options) {
  std::ofstream file(path, std::ios::binary);
  for (int64_t c = 0; c < options.columns; ++c)
    file << "column_" << c << (c + 1 < options.columns ? "," : "\n");
  const std::string rows = Rows(options);
  for (int64_t written = 0; written < options.bytes; written += std::ssize(rows)) {
    const size_t whole = std::min(rows.size(), static_cast<size_t>(options.bytes - written));
    // Write whole lines only.
    file << std::string_view(rows).substr(0, rows.rfind('\n', whole - 1) + 1);
  }
  file.close();
  return file ? OkStatus() : ResourceExhausted("cannot write ", path);
}

Status Read(const std::string& path, const Options& options) {
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  Stopwatch watch;
  ASSIGN_OR_RETURN(const auto source, data::OpenCsv({.file = path}));
  std::vector<data::Column> columns;
  for (const data::Field& field : source->fields())
    columns.push_back({.name = field.name, .array = field.name, .shape = field.shape});
  ASSIGN_OR_RETURN(const auto pipeline,
                   data::Pipeline::Create(source, {.batch_size = options.batch,
                                                   .epochs = 1,
                                                   .shuffle = false,
                                                   .prefetch = 0,
                                                   .columns = std::move(columns)}));
  int64_t rows = 0;
  double first_batch_s = 0;
  while (const data::Batch* batch = pipeline->Next()) {
    if (rows == 0) first_batch_s = watch.Elapsed().wall_s;
    rows += batch->size();
  }
  RETURN_IF_ERROR(pipeline->status());
  const Times times = watch.Elapsed();
  Report("csv")
      .Add("columns", options.columns)
      .Add("bytes", static_cast<int64_t>(bytes))
      .Add("rows", rows)
      .Add("rows_per_s", static_cast<double>(rows) / times.wall_s)
      .Add("mb_per_s", bytes * 1e-6 / times.wall_s)
      .Add("mb_per_cpu_s", bytes * 1e-6 / times.cpu_s)
      .Add("first_batch_s", first_batch_s)
      .Print(times);
  return OkStatus();
}

Status Run(const std::string& path, const Options& options) {
  RETURN_IF_ERROR(Write(path, options));
  return Read(path, options);
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::Options options;
  CLI::App app("Reading a CSV file into batches", "csv");
  app.add_option("--columns", options.columns, "Columns of the file")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  app.add_option("--bytes", options.bytes, "Approximate size of the file; default: 1Gi")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--batch", options.batch, "Examples in a batch")->capture_default_str();
  app.add_option("--folder", options.folder, "Folder of the file")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const std::string path = tfjob::StrCat(options.folder, "/tfjob-bench-", getpid(), ".csv");
  const tfjob::Status status = tfjob::bench::Run(path, options);
  std::filesystem::remove(path);
  if (status.ok()) return 0;
  std::fprintf(stderr, "csv: %s\n", status.ToString().c_str());
  return 1;
}
