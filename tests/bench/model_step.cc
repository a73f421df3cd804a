// Implements the benchmark cases that compute the gradients of a model: encoder, lstm and
// resnet-50. A step consists of the forward pass, the mean squared error against zeros, and the
// backward pass, without an optimizer. MODEL_CASE is the name of the case, and MODEL_FILE is the
// model's file in Keras' JSON form.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/thread_pool.h"
#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/model/keras.h"
#include "runtime/model/layer/initializer.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct Options {
  std::string file = MODEL_FILE;
  int64_t batch = MODEL_BATCH;
  int threads = 2;
  double seconds = 10;
  bool print_program = false;
};

constexpr int kWarmUpSteps = 3;

// Returns the types of the model's inputs. They must be float32, and their shapes must be known.
StatusOr<std::vector<graph::TensorType>> InputTypes(const model::Model& model) {
  std::vector<graph::TensorType> types;
  for (const auto& type : model::StatedInputs(model)) {
    if (!type || type->dtype != DType::kFloat32)
      return InvalidArgument("expected inputs of float32 whose shapes the model states");
    types.push_back(*type);
  }
  return types;
}

StatusOr<std::unique_ptr<exec::Program>> CompileGradients(const model::Model& model,
                                                          const Options& options,
                                                          variables::VariableStore& store,
                                                          ThreadPool* pool) {
  model::BuildOptions build{.mode = model::Mode::kTrain, .batch_size = options.batch};
  ASSIGN_OR_RETURN(build.features, InputTypes(model));
  ASSIGN_OR_RETURN(const std::vector<graph::TensorType> outputs,
                   model::OutputTypes(model, build.features));
  for (const graph::TensorType& output : outputs) {
    build.objectives.push_back(
        {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = output});
  }
  ASSIGN_OR_RETURN(const model::BuiltGraph built, model::Build(model, build));
  for (const model::VariableSpec& spec : built.variables) {
    ASSIGN_OR_RETURN(auto* variable,
                     store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable));
    RETURN_IF_ERROR(variable->FromTensor(
        model::InitialValue(spec.initializer, spec.dtype, spec.shape, /*seed=*/1, spec.name)));
  }
  return exec::Compile(built.graph, store, exec::CpuDevice(pool));
}

// Contains a value for each feed of the program: zeros for labels, the step and the seed, and noise
// for all other feeds.
class Feeds {
 public:
  explicit Feeds(const exec::Program& program) {
    std::mt19937 random(1);
    std::normal_distribution<float> noise;
    for (const exec::Port& port : program.feeds()) {
      Tensor& value = values_.emplace_back(port.type.dtype, port.type.shape);
      const bool labels = port.name.starts_with(model::kLabels);
      if (port.type.dtype != DType::kFloat32 || labels) continue;
      for (float& element : value.data<float>()) element = noise(random);
    }
    for (const Tensor& value : values_) feeds_.push_back(exec::Feed::Of(value));
  }
  std::span<const exec::Feed> feeds() const { return feeds_; }

 private:
  std::vector<Tensor> values_;
  std::vector<exec::Feed> feeds_;
};

Status Run(const Options& options) {
  std::unique_ptr<ThreadPool> pool;
  if (options.threads > 1) pool = std::make_unique<ThreadPool>("bench", options.threads - 1);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file));
  ASSIGN_OR_RETURN(const model::Model model, model::ReadKerasJson(text, options.file));
  variables::VariableStore store(exec::RowStride);
  ASSIGN_OR_RETURN(const auto program, CompileGradients(model, options, store, pool.get()));
  if (options.print_program) std::fputs(program->ToString().c_str(), stderr);
  const Feeds feeds(*program);
  for (int i = 0; i < kWarmUpSteps; ++i) RETURN_IF_ERROR(program->Run(feeds.feeds()));
  const Stopwatch watch;
  int64_t steps = 0;
  do {
    RETURN_IF_ERROR(program->Run(feeds.feeds()));
    ++steps;
  } while (watch.Elapsed().wall_s < options.seconds);
  const Times times = watch.Elapsed();

  Report report(MODEL_CASE);
  const auto samples = static_cast<double>(steps * options.batch);
  report.Add("batch", options.batch).Add("threads", options.threads).Add("steps", steps);
  report.Add("samples_per_s", samples / times.wall_s);
  report.Add("samples_per_cpu_s", samples / times.cpu_s);
  report.Add("step_ms", 1e3 * times.wall_s / static_cast<double>(steps));
  report.Add("arena_mb", static_cast<double>(program->arena_bytes()) / (1 << 20));
  report.Add("loss",
             static_cast<double>(program->Fetch<float>(program->FindFetch(model::kLoss))[0]));
  report.Print(times);
  return OkStatus();
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::Options options;
  CLI::App app("Computes the gradients of a model on noise");
  app.add_option("--file", options.file, "the model, in Keras' JSON");
  app.add_option("--batch", options.batch, "examples per step")->check(CLI::Range(1, 4096));
  app.add_option("--threads", options.threads, "threads that compute")->check(CLI::Range(1, 256));
  app.add_option("--seconds", options.seconds, "of the measured part")->check(CLI::PositiveNumber);
  app.add_flag("--print-program", options.print_program, "the compiled program, on standard error");
  CLI11_PARSE(app, argc, argv);
  const tfjob::Status status = tfjob::bench::Run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
