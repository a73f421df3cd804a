// Implements the benchmark case embedding: training a large table. Each example looks up several
// rows; the model is a linear function of the mean of these rows.
#include "runtime/model/layers/embedding.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "runtime/base/thread_pool.h"
#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/model/layer/initializer.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/pooling.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct Options {
  int64_t rows = 1'000'000, cols = 64, batch = 4096, ids = 1, steps = 300;
  std::string optimizer = "adagrad";
  bool lazy = false;
  int threads = 2;
};

constexpr int64_t kWarmUpSteps = 20;
constexpr size_t kBatches = 16;  // batches with different ids, which are used in rotation

StatusOr<std::unique_ptr<exec::Program>> Compile(const Options& options,
                                                 variables::VariableStore& store,
                                                 ThreadPool* pool) {
  namespace layers = model::layers;
  const model::Model table = model::Sequential(
      "table",
      {{.name = "table",
        .config = layers::Embedding{.input_dim = options.rows, .output_dim = options.cols}},
       {.name = "mean", .config = layers::GlobalAveragePooling1D{}},
       {.name = "out", .config = layers::Dense{.units = 1}}});
  model::BuildOptions build{.mode = model::Mode::kTrain,
                            .batch_size = options.batch,
                            .features = {{DType::kInt32, {options.ids}}},
                            .objectives = {{.loss = {.kind = model::LossKind::kMeanSquaredError},
                                            .labels = {DType::kFloat32, {}}}}};
  ASSIGN_OR_RETURN(const optimizer::Kind kind, optimizer::ParseKind(options.optimizer));
  build.optimizer = optimizer::Optimizer::Default(kind);
  build.optimizer->lazy = options.lazy;
  ASSIGN_OR_RETURN(const model::BuiltGraph built, model::Build(table, build));
  for (const model::VariableSpec& spec : built.variables) {
    ASSIGN_OR_RETURN(auto* variable,
                     store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable));
    RETURN_IF_ERROR(variable->FromTensor(
        model::InitialValue(spec.initializer, spec.dtype, spec.shape, /*seed=*/1, spec.name)));
  }
  return exec::Compile(built.graph, store, exec::CpuDevice(pool), {.fetches = {model::kLoss}});
}

Status Run(const Options& options) {
  std::unique_ptr<ThreadPool> pool;
  if (options.threads > 1) pool = std::make_unique<ThreadPool>("bench", options.threads - 1);
  variables::VariableStore store(exec::RowStride);
  ASSIGN_OR_RETURN(const auto program, Compile(options, store, pool.get()));
  std::mt19937 random(1);
  std::uniform_int_distribution<int32_t> id(0, static_cast<int32_t>(options.rows - 1));
  std::vector<std::vector<int32_t>> batches(
      kBatches, std::vector<int32_t>(static_cast<size_t>(options.batch * options.ids)));
  for (auto& batch : batches) {
    for (int32_t& row : batch) row = id(random);
  }
  const std::vector<float> labels(static_cast<size_t>(options.batch), 1);
  int64_t step = 0;
  const int64_t seed = 1;
  const auto train = [&](int64_t steps) -> Status {
    for (const int64_t end = step + steps; step < end; ++step) {
      const std::vector<int32_t>& ids = batches[static_cast<size_t>(step) % kBatches];
      const exec::Feed feeds[] = {exec::Feed::Of(std::span<const int32_t>(ids)),
                                  exec::Feed::Of(std::span<const float>(labels)),
                                  exec::Feed::Of(step), exec::Feed::Of(seed)};
      RETURN_IF_ERROR(program->Run(feeds));
    }
    return OkStatus();
  };
  RETURN_IF_ERROR(train(kWarmUpSteps));
  const Stopwatch watch;
  RETURN_IF_ERROR(train(options.steps));
  const Times times = watch.Elapsed();
  const auto lookups = static_cast<double>(options.steps * options.batch * options.ids);
  Report report("embedding");
  report.Add("rows", options.rows).Add("cols", options.cols).Add("optimizer", options.optimizer);
  report.Add("lazy", options.lazy ? 1 : 0).Add("batch", options.batch).Add("ids", options.ids);
  report.Add("threads", options.threads).Add("steps", options.steps);
  report.Add("lookups_per_s", lookups / times.wall_s);
  report.Add("step_ms", 1e3 * times.wall_s / static_cast<double>(options.steps));
  report.Add("final_loss", static_cast<double>(program->Fetch<float>(0)[0]));
  report.Print(times);
  return OkStatus();
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::Options options;
  CLI::App app("Trains a large table");
  app.add_option("--rows", options.rows, "rows of the table");
  app.add_option("--cols", options.cols, "columns of the table");
  app.add_option("--batch", options.batch, "examples per batch");
  app.add_option("--ids", options.ids, "ids per example");
  app.add_option("--steps", options.steps, "measured steps");
  app.add_option("--optimizer", options.optimizer, "sgd, adagrad, adam or rmsprop");
  app.add_flag("--lazy", options.lazy, "leave rows without a gradient as they are");
  app.add_option("--threads", options.threads, "threads that compute");
  CLI11_PARSE(app, argc, argv);
  const tfjob::Status status = tfjob::bench::Run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
