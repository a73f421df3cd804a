// Implements the benchmark case number-check. Measures the cost of checking that the loss and the
// gradients of a step are finite, and the cost of clipping. Reports the rate of the check alone,
// and the time of a training step of a 784-512-512-10 network on one device with each combination
// of check and clipping.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/model/layer/initializer.h"
#include "runtime/model/layers/dense.h"
#include "runtime/optimizer/finite.h"
#include "runtime/strategy/one_device_strategy.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct Options {
  int64_t batch = 128;
  double seconds = 2;  // duration of a measurement
};

void CheckAlone(int64_t bytes, double seconds) {
  const std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float), 1.5f);
  int64_t passes = 0;
  bool finite = optimizer::AllFinite(std::span<const float>(values));
  Stopwatch watch;
  for (; watch.Elapsed().wall_s < seconds; ++passes)
    finite = finite && optimizer::AllFinite(std::span<const float>(values));
  const Times times = watch.Elapsed();
  Report("number-check")
      .Add("what", "check alone")
      .Add("bytes", bytes)
      .Add("finite", int{finite})
      .Add("gb_per_s", static_cast<double>(bytes * passes) / times.wall_s / 1e9)
      .Print(times);
}

strategy::ModelDefinition Define(const std::string& optimizer, const Options& options,
                                 const optimizer::Clipping& clipping) {
  strategy::ModelDefinition definition;
  model::layers::Dense hidden{.units = 512, .activation = model::ActivationKind::kRelu};
  definition.model =
      model::Sequential("mlp", {{.name = "dense", .config = hidden},
                                {.name = "dense_1", .config = hidden},
                                {.name = "dense_2", .config = model::layers::Dense{.units = 1}}});
  definition.build.batch_size = options.batch;
  definition.build.features = model::Features({784});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.build.clipping = clipping;
  definition.state.optimizer =
      optimizer::Optimizer::Default(optimizer::ParseKind(optimizer).value());
  definition.state.optimizer.learning_rate = 1e-4;
  return definition;
}

struct Rule {
  const char* name;
  config::OnNonFinite on_non_finite;
  optimizer::Clipping clipping;
};

Status TrainSteps(const std::string& optimizer, const Rule& rule, const Options& options) {
  strategy::ModelDefinition definition = Define(optimizer, options, rule.clipping);
  RETURN_IF_ERROR(strategy::DefineVariables(definition));
  ASSIGN_OR_RETURN(
      auto strategy,
      strategy::MakeOneDevice(
          {}, {.definition = definition,
               .device = exec::CpuDevice(),
               .on_non_finite = rule.on_non_finite,
               .provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
                 return strategy::InitialState(definition);
               }}));
  RETURN_IF_ERROR(strategy->Start().status());
  ASSIGN_OR_RETURN(data::Dataset data,
                   data::MakeLinear({.weights = std::vector<double>(784, 0.01), .examples = 2048}));
  const std::vector<data::Column> columns = data::FloatColumns(data);
  ASSIGN_OR_RETURN(auto pipeline,
                   data::Pipeline::Create(std::make_shared<const data::Dataset>(std::move(data)),
                                          {.batch_size = options.batch,
                                           .drop_remainder = true,
                                           .prefetch = 0,
                                           .columns = columns}));
  strategy::MetricTotals totals;
  const auto steps_for = [&](double seconds) -> StatusOr<std::pair<int64_t, Times>> {
    Stopwatch watch;
    int64_t steps = 0;
    for (; watch.Elapsed().wall_s < seconds; ++steps)
      RETURN_IF_ERROR(strategy->Step(*pipeline->Next(), totals).status());
    return std::pair(steps, watch.Elapsed());
  };
  RETURN_IF_ERROR(steps_for(options.seconds / 4).status());
  ASSIGN_OR_RETURN(const auto measured, steps_for(options.seconds));
  const auto& [steps, times] = measured;
  Report("number-check")
      .Add("what", "one device")
      .Add("optimizer", optimizer)
      .Add("rule", rule.name)
      .Add("batch", options.batch)
      .Add("ms_per_step", times.wall_s * 1e3 / static_cast<double>(steps))
      .Add("cpu_ms_per_step", times.cpu_s * 1e3 / static_cast<double>(steps))
      .Print(times);
  return OkStatus();
}

Status Run(const Options& options) {
  for (int64_t bytes : {int64_t{256} << 10, int64_t{4} << 20, int64_t{256} << 20})
    CheckAlone(bytes, options.seconds / 4);
  using config::OnNonFinite;
  const Rule rules[] = {
      {"continue", OnNonFinite::kContinue, {}},
      {"fail", OnNonFinite::kFail, {}},
      {"skip", OnNonFinite::kSkip, {}},
      {"continue, clipvalue", OnNonFinite::kContinue, {optimizer::ClipKind::kValue, 1}},
      {"continue, clipnorm", OnNonFinite::kContinue, {optimizer::ClipKind::kNorm, 1}},
      {"continue, global_clipnorm", OnNonFinite::kContinue, {optimizer::ClipKind::kGlobalNorm, 1}},
  };
  for (const char* optimizer : {"sgd", "adam"}) {
    for (const Rule& rule : rules) RETURN_IF_ERROR(TrainSteps(optimizer, rule, options));
  }
  return OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("The cost of checking and clipping gradients", "number_check");
  app.add_option("--batch", options.batch, "Examples in a batch")->capture_default_str();
  app.add_option("--seconds", options.seconds, "Seconds per measurement")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "number_check: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
