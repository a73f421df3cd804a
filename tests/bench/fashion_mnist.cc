#include "tests/bench/fashion_mnist.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/thread_pool.h"
#include "runtime/data/pipeline.h"
#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/model/layer/initializer.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/shape.h"

namespace tfjob::bench {
namespace {

constexpr int64_t kWarmUpSteps = 20;
constexpr int64_t kLossExamples = 5000;  // examples of the training set, as in tests/bench/peers
constexpr int64_t kEvalBatch = 500;
const Shape kFeatures({28, 28});

// The first steps may wait for data, because the batches are not yet prepared ahead.
constexpr int64_t kStepsBeforeWaits = 100;

int64_t VoluntarySwitches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Counts the steps of a run that wait for data. A step waits if its thread sleeps in the call that
// returns the batch.
class DataWaits {
 public:
  const data::Batch* Next(data::Pipeline& pipeline) {
    if (++steps_ <= kStepsBeforeWaits) return pipeline.Next();
    const int64_t before = VoluntarySwitches();
    const data::Batch* batch = pipeline.Next();
    waits_ += VoluntarySwitches() > before ? 1 : 0;
    return batch;
  }
  // The number of steps in which waits are counted; at least 1.
  int64_t steps() const { return std::max<int64_t>(1, steps_ - kStepsBeforeWaits); }
  int64_t waits() const { return waits_; }

 private:
  int64_t steps_ = 0, waits_ = 0;
};

// Runs a program on batches.
class Runner {
 public:
  static StatusOr<std::unique_ptr<Runner>> Create(const model::Model& model, model::Mode mode,
                                                  int64_t batch, const std::string& optimizer,
                                                  int64_t prefetch,
                                                  std::shared_ptr<const data::Dataset> dataset,
                                                  variables::VariableStore& store,
                                                  ThreadPool* pool) {
    std::unique_ptr<Runner> runner(new Runner());
    model::BuildOptions options{
        .mode = mode,
        .batch_size = batch,
        .features = model::Features(kFeatures),
        .objectives = {{.loss = {.from_logits = true}, .metrics = {model::Metric::kAccuracy}}}};
    if (mode == model::Mode::kTrain) {
      options.objectives[0].metrics.clear();
      ASSIGN_OR_RETURN(options.optimizer, OptimizerOf(optimizer));
    }
    ASSIGN_OR_RETURN(model::BuiltGraph built, model::Build(model, options));
    for (const model::VariableSpec& variable : built.variables) {
      if (store.Find(variable.name) != nullptr) continue;
      ASSIGN_OR_RETURN(auto* created, store.Create(variable.name, variable.dtype, variable.shape,
                                                   variables::Kind::kTrainable));
      RETURN_IF_ERROR(created->FromTensor(model::InitialValue(
          variable.initializer, variable.dtype, variable.shape, /*seed=*/1, variable.name)));
    }
    ASSIGN_OR_RETURN(runner->program_, exec::Compile(built.graph, store, exec::CpuDevice(pool)));
    data::PipelineOptions batches{.batch_size = batch};
    batches.shuffle = mode == model::Mode::kTrain;
    batches.drop_remainder = true;
    batches.prefetch = prefetch;
    batches.columns = FashionMnistColumns(*dataset);
    ASSIGN_OR_RETURN(runner->pipeline_, data::Pipeline::Create(std::move(dataset), batches));
    return runner;
  }

  int64_t batches_per_epoch() const { return pipeline_->batches_per_epoch(); }
  const exec::Program& program() const { return *program_; }
  const DataWaits& waits() const { return waits_; }

  Status Run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i, ++step_) {
      const data::Batch* batch = waits_.Next(*pipeline_);
      exec::Feed feeds[4] = {exec::Feed::Of(batch->tensors[0].value),
                             exec::Feed::Of(batch->tensors[1].value), exec::Feed::Of(step_),
                             exec::Feed::Of(seed_)};
      RETURN_IF_ERROR(program_->Run(std::span(feeds, program_->feeds().size())));
    }
    return OkStatus();
  }

  // Runs `batches` batches. Returns the total of the fetch `sum`, divided by `examples`.
  StatusOr<double> Mean(std::string_view sum, int64_t batches, int64_t examples) {
    double total = 0;
    for (int64_t i = 0; i < batches; ++i) {
      RETURN_IF_ERROR(Run(1));
      total += static_cast<double>(program_->Fetch<float>(program_->FindFetch(sum))[0]);
    }
    return total / static_cast<double>(examples);
  }

 private:
  std::unique_ptr<exec::Program> program_;
  std::unique_ptr<data::Pipeline> pipeline_;
  DataWaits waits_;
  int64_t step_ = 0, seed_ = 1;
};

Status Evaluate(const model::Model& model, variables::VariableStore& store, ThreadPool* pool,
                std::shared_ptr<const data::Dataset> train, Report& report) {
  ASSIGN_OR_RETURN(auto loss, Runner::Create(model, model::Mode::kEval, kEvalBatch, "",
                                             /*prefetch=*/0, std::move(train), store, pool));
  ASSIGN_OR_RETURN(const double final_loss,
                   loss->Mean(model::kLossSum, kLossExamples / kEvalBatch, kLossExamples));
  ASSIGN_OR_RETURN(auto test, LoadFashionMnist("t10k"));
  const int64_t examples = test->size();
  ASSIGN_OR_RETURN(auto accuracy, Runner::Create(model, model::Mode::kEval, kEvalBatch, "",
                                                 /*prefetch=*/0, test, store, pool));
  ASSIGN_OR_RETURN(const double right,
                   accuracy->Mean("accuracy_sum", accuracy->batches_per_epoch(), examples));
  report.Add("final_loss", final_loss).Add("test_accuracy", right);
  return OkStatus();
}

Status Run(const FashionMnistCase& what, const FashionMnistOptions& options) {
  std::unique_ptr<ThreadPool> pool;
  if (options.threads > 1) pool = std::make_unique<ThreadPool>("bench", options.threads - 1);
  variables::VariableStore store(exec::RowStride);
  ASSIGN_OR_RETURN(auto train, LoadFashionMnist("train"));
  ASSIGN_OR_RETURN(auto runner,
                   Runner::Create(what.model, model::Mode::kTrain, options.batch, options.optimizer,
                                  options.prefetch, train, store, pool.get()));
  if (options.print_program) std::fputs(runner->program().ToString().c_str(), stderr);
  const auto steps = std::max<int64_t>(
      1, static_cast<int64_t>(options.epochs * static_cast<double>(runner->batches_per_epoch())));
  RETURN_IF_ERROR(runner->Run(kWarmUpSteps));
  const Stopwatch watch;
  RETURN_IF_ERROR(runner->Run(steps));
  const Times times = watch.Elapsed();

  Report report(what.name);
  const auto samples = static_cast<double>(steps * options.batch);
  report.Add("model", what.shape).Add("optimizer", options.optimizer);
  report.Add("batch", options.batch).Add("threads", options.threads).Add("steps", steps);
  report.Add("samples_per_s", samples / times.wall_s);
  report.Add("samples_per_cpu_s", samples / times.cpu_s);
  if (options.prefetch > 0) {
    report.Add("prefetch", options.prefetch).Add("steps_that_wait", runner->waits().waits());
    report.Add("share_that_waits", static_cast<double>(runner->waits().waits()) /
                                       static_cast<double>(runner->waits().steps()));
  }
  RETURN_IF_ERROR(Evaluate(what.model, store, pool.get(), train, report));
  report.Print(times);
  return OkStatus();
}

}  // namespace

StatusOr<std::shared_ptr<const data::Dataset>> LoadFashionMnist(const std::string& split) {
  const char* set = std::getenv("FASHION_MNIST_DIR");
  const std::string folder = set != nullptr ? set : "/usr/share/datasets/fashion-mnist";
  const std::string prefix = folder + "/" + split;
  ASSIGN_OR_RETURN(data::Dataset dataset, data::LoadIdx({prefix + "-images-idx3-ubyte.gz",
                                                         prefix + "-labels-idx1-ubyte.gz"}));
  return std::make_shared<const data::Dataset>(std::move(dataset));
}

StatusOr<optimizer::Optimizer> OptimizerOf(const std::string& name) {
  ASSIGN_OR_RETURN(const optimizer::Kind kind, optimizer::ParseKind(name));
  auto optimizer = optimizer::Optimizer::Default(kind);
  if (kind == optimizer::Kind::kSgd) optimizer.learning_rate = 0.1;
  return optimizer;
}

std::vector<data::Column> FashionMnistColumns(const data::Dataset& dataset) {
  return {data::FloatColumn(dataset, data::kFeaturesArray, 1.0f / 255),
          data::ClassColumn(data::kLabelsArray, kClasses)};
}

model::Model MlpModel(const std::vector<int64_t>& hidden) {
  std::vector<model::Layer> layers = {{.name = "flatten", .config = model::layers::Flatten{}}};
  for (size_t i = 0; i < hidden.size(); ++i) {
    layers.push_back({.name = StrCat("dense_", i),
                      .config = model::layers::Dense{.units = hidden[i],
                                                     .activation = model::ActivationKind::kRelu}});
  }
  layers.push_back({.name = "logits", .config = model::layers::Dense{.units = kClasses}});
  return model::Sequential("mlp", std::move(layers));
}

void AddFlags(CLI::App& app, FashionMnistOptions& options) {
  app.add_option("--batch", options.batch, "examples per step")->check(CLI::Range(1, 60000));
  app.add_option("--threads", options.threads, "threads that compute")->check(CLI::Range(1, 256));
  app.add_option("--optimizer", options.optimizer, "sgd (rate 0.1), adam, adagrad or rmsprop");
  app.add_option("--epochs", options.epochs, "of the timed part")->check(CLI::PositiveNumber);
  app.add_option("--prefetch", options.prefetch,
                 "batches that another thread prepares ahead; counts the steps that wait for data")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--print-program", options.print_program, "the compiled program, on standard error");
}

int RunFashionMnist(const FashionMnistCase& what, const FashionMnistOptions& options) {
  const Status status = Run(what, options);
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", what.name.c_str(), status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace tfjob::bench
