// Implements the benchmark case buckets: compares batches of examples of similar lengths with
// batches of examples of any length. Reports the fraction of padding (wasted work for a model), the
// rate of batches, and the time that it takes to measure the lengths at the start.
#include "runtime/data/buckets.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/data/operators/bucket_by_length.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

using data::SourcePtr;

struct BucketsOptions {
  int64_t examples = 50'000;
  int64_t length = 512;
  int64_t batch = 32;
  int64_t epochs = 2;
};

// Returns a source of tokens in memory. Sets `used` to the number of tokens that are not padding.
// Most examples are short.
SourcePtr Tokens(const BucketsOptions& options, int64_t& used) {
  Tensor tokens(DType::kInt64, {options.examples, options.length});
  PhiloxStream random(1);
  for (int64_t i = 0; i < options.examples; ++i) {
    const double uniform = random.Uniform();
    const int64_t length = std::clamp<int64_t>(
        static_cast<int64_t>(uniform * uniform * static_cast<double>(options.length)), 1,
        options.length);
    std::ranges::fill(tokens.data<int64_t>().subspan(static_cast<size_t>(i * options.length),
                                                     static_cast<size_t>(length)),
                      7);
    used += length;
  }
  return data::TableSource(std::make_shared<const data::Dataset>(
      data::Dataset{.arrays = {{"tokens", "memory", std::move(tokens)}}}));
}

// Returns the source in buckets. Reports the time that it takes to measure the lengths of the
// examples.
StatusOr<SourcePtr> Measured(SourcePtr source, const BucketsOptions& options) {
  std::vector<int64_t> boundaries;
  for (int64_t length = options.length / 8; length > 0 && length < options.length; length *= 2)
    boundaries.push_back(length);
  Stopwatch watch;
  ASSIGN_OR_RETURN(
      SourcePtr made,
      data::BucketByLength(std::move(source), {.fields = {"tokens"}, .boundaries = boundaries}));
  const Times times = watch.Elapsed();
  Report("buckets")
      .Add("what", "measure the lengths")
      .Add("examples", options.examples)
      .Add("examples_per_s", static_cast<double>(options.examples) / times.wall_s)
      .Print(times);
  return made;
}

Status Read(const SourcePtr& source, const char* what, int64_t used,
            const BucketsOptions& options) {
  data::PipelineOptions reading{.batch_size = options.batch,
                                .epochs = options.epochs,
                                .prefetch = 0,
                                .columns = {{.name = "tokens",
                                             .array = "tokens",
                                             .dtype = DType::kInt64,
                                             .shape = {options.length},
                                             .by_length = source->buckets() != nullptr}}};
  if (const data::Buckets* buckets = source->buckets())
    reading.bucket_batches.assign(buckets->count(), options.batch);
  ASSIGN_OR_RETURN(const auto pipeline, data::Pipeline::Create(source, reading));
  Stopwatch watch;
  int64_t batches = 0, places = 0;
  while (const data::Batch* batch = pipeline->Next()) {
    ++batches;
    places += batch->tensors[0].value.num_elements();
  }
  RETURN_IF_ERROR(pipeline->status());
  const Times times = watch.Elapsed();
  Report("buckets")
      .Add("what", what)
      .Add("batch", options.batch)
      .Add("padding_share",
           1 - static_cast<double>(used * options.epochs) / static_cast<double>(places))
      .Add("batches_per_s", static_cast<double>(batches) / times.wall_s)
      .Print(times);
  return OkStatus();
}

Status Run(const BucketsOptions& options) {
  int64_t used = 0;
  const SourcePtr source = Tokens(options, used);
  RETURN_IF_ERROR(Read(source, "any length", used, options));
  ASSIGN_OR_RETURN(const SourcePtr buckets, Measured(source, options));
  return Read(buckets, "by length", used, options);
}

int Main(int argc, char** argv) {
  BucketsOptions options;
  CLI::App app("Batches of examples of similar lengths", "buckets");
  app.add_option("--examples", options.examples, "Number of examples")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--length", options.length, "Length of the longest example")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "Examples in a batch")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--epochs", options.epochs, "How often they are read")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "buckets: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
