// Implements the benchmark case overlap: measures how much of the exchange of gradients is hidden
// behind the backward pass. The model consists of equal Dense layers. Every rank is a process with
// one compute thread on a processor of its own.
//
// The wire is throttled: every all-reduce first sleeps for a time per byte that is chosen so that
// the exchange alone takes half as long as the backward pass. Sleeping takes no processor time, so
// the result shows how well the exchange overlaps with the computation, and not how many cores the
// machine has. The benchmark alternates between steps, steps without the exchange, and the exchange
// alone.
//
//   hidden = 1 − (step − step without the exchange) / (exchange alone)
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/model/layers/dense.h"
#include "runtime/strategy/gradient_buckets.h"
#include "runtime/strategy/replica.h"
#include "tests/bench/metered_communicator.h"
#include "tests/bench/ranks.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

constexpr int kTurns = 5;         // turns of each way; medians are reported
constexpr int kCalibrations = 3;  // corrections of the throttle

struct Options {
  int ranks = 2;
  int64_t layers = 12, width = 512, batch = 1024;
  std::string transport = "tcp";
  int steps = 8;  // steps per turn
};

// The measurements of a rank, per step.
struct Results {
  double step_s = 0, without_exchange_s = 0, exchange_alone_s = 0;
  double forward_s = 0, backward_s = 0;
  double unthrottled_s = 0;  // the exchange alone, without the throttle
  double bytes_per_s = 0;    // of the throttle
  double exchanged_bytes = 0;
  double cpu_s = 0;  // of a step
};

strategy::ModelDefinition Define(const Options& options) {
  strategy::ModelDefinition definition;
  std::vector<model::Layer> layers;
  for (int64_t i = 0; i < options.layers; ++i) {
    layers.push_back({.name = StrCat("dense_", i),
                      .config = model::layers::Dense{.units = options.width,
                                                     .activation = model::ActivationKind::kRelu}});
  }
  definition.model = model::Sequential("layers", std::move(layers));
  definition.build.batch_size = options.batch;
  definition.build.features = model::Features(Shape({options.width}));
  definition.build.objectives = {{.loss = {.kind = model::LossKind::kMeanSquaredError},
                                  .labels = {DType::kFloat32, Shape({options.width})}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kSgd);
  definition.state.optimizer.learning_rate = 1e-3;
  return definition;
}

// Returns a batch of noise, with zeros as labels.
data::Batch Noise(const Options& options, int rank) {
  Tensor features(DType::kFloat32, {options.batch, options.width});
  Tensor labels(DType::kFloat32, {options.batch, options.width});
  std::mt19937 random(static_cast<uint32_t>(rank));
  std::normal_distribution<float> noise;
  for (float& value : features.data<float>()) value = noise(random);
  std::ranges::fill(labels.data<float>(), 0.f);
  return {.tensors = {{model::kFeatures, std::move(features)}, {model::kLabels, std::move(labels)}},
          .position = {}};
}

class Rank {
 public:
  Rank(const Options& options, collectives::Communicator& communicator)
      : options_(options),
        communicator_(communicator),
        metered_(communicator),
        definition_(Define(options)),
        store_(exec::RowStride),
        batch_(Noise(options, communicator.rank())) {}

  StatusOr<Results> Measure() {
    RETURN_IF_ERROR(Prepare());
    ASSIGN_OR_RETURN(results_.forward_s, Median([&] { return Forward(); }));
    ASSIGN_OR_RETURN(const double compute, Median([&] { return Compute(); }));
    results_.backward_s = compute - results_.forward_s;
    RETURN_IF_ERROR(Calibrate());
    std::vector<double> steps, without, alone;
    const Stopwatch watch;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (int i = 0; i < options_.steps; ++i) {
        ASSIGN_OR_RETURN(steps.emplace_back(), Step(/*exchanges=*/true));
      }
      for (int i = 0; i < options_.steps; ++i) {
        ASSIGN_OR_RETURN(without.emplace_back(), Step(/*exchanges=*/false));
        ASSIGN_OR_RETURN(alone.emplace_back(), ExchangeAlone());
      }
    }
    results_.step_s = MedianOf(steps);
    results_.without_exchange_s = MedianOf(without);
    results_.exchange_alone_s = MedianOf(alone);
    results_.cpu_s = watch.Elapsed().cpu_s / static_cast<double>(steps.size() + without.size());
    return results_;
  }

 private:
  Status Prepare() {
    RETURN_IF_ERROR(strategy::DefineVariables(definition_));
    ASSIGN_OR_RETURN(replica_, strategy::Replica::Create({.definition = definition_,
                                                          .device = exec::CpuDevice(),
                                                          .replica = communicator_.rank(),
                                                          .provide_state = nullptr},
                                                         /*bytes_per_pack=*/0));
    const state::Snapshot initial = strategy::InitialState(definition_);
    RETURN_IF_ERROR(replica_->Load(initial));
    RETURN_IF_ERROR(replica_->Connect(metered_));
    ASSIGN_OR_RETURN(strategy::BucketPlan plan,
                     strategy::PlanStep(definition_, /*bytes_per_pack=*/0));
    buckets_ = std::make_unique<strategy::GradientBuckets>(std::move(plan),
                                                           definition_.variables.size(), 2);
    RETURN_IF_ERROR(buckets_->Connect(metered_));
    RETURN_IF_ERROR(strategy::CreateVariables(definition_, store_));
    RETURN_IF_ERROR(strategy::LoadValues(definition_, initial, store_));
    ASSIGN_OR_RETURN(forward_, strategy::ModelProgram::Compile(
                                   definition_, model::Mode::kEval, options_.batch,
                                   /*with_updates=*/false, store_, exec::CpuDevice()));
    return OkStatus();
  }

  // Each of the next four functions waits for the other ranks, and then returns its own time.
  StatusOr<double> Forward() {
    RETURN_IF_ERROR(communicator_.Barrier());
    const double start = Now();
    RETURN_IF_ERROR(forward_->Run(batch_, step_, definition_.seed));
    return Now() - start;
  }
  // The forward and the backward pass of a step without the exchange.
  StatusOr<double> Compute() {
    metered_.Exchange(false);
    RETURN_IF_ERROR(communicator_.Barrier());
    const double start = Now();
    RETURN_IF_ERROR(replica_->Compute(batch_, step_, AllShares()));
    const double end = Now();
    RETURN_IF_ERROR(replica_->Reduce());
    return end - start;
  }
  StatusOr<double> Step(bool exchanges) {
    metered_.Exchange(exchanges);
    RETURN_IF_ERROR(communicator_.Barrier());
    const double start = Now();
    RETURN_IF_ERROR(replica_->Compute(batch_, step_, AllShares()));
    RETURN_IF_ERROR(replica_->Reduce());
    strategy::MetricTotals totals;
    RETURN_IF_ERROR(replica_->Apply(step_++, totals).status());
    return Now() - start;
  }
  // Returns the time of the all-reduces, without the preparation of their values.
  StatusOr<double> ExchangeAlone() {
    metered_.Exchange(true);
    RETURN_IF_ERROR(communicator_.Barrier());
    metered_.TakeMeasurements();
    buckets_->Begin({});
    buckets_->AddZeros();
    std::vector<double> totals(2);
    RETURN_IF_ERROR(buckets_->Finish(totals));
    const Measurements exchange = metered_.TakeMeasurements();
    results_.exchanged_bytes = static_cast<double>(exchange.bytes);
    return exchange.seconds;
  }

  strategy::Shares AllShares() const {
    return {options_.batch * options_.ranks, communicator_.size()};
  }

  template <typename Way>
  StatusOr<double> Median(const Way& way) {
    RETURN_IF_ERROR(way().status());  // warms up
    std::vector<double> times;
    for (int i = 0; i < options_.steps; ++i) {
      ASSIGN_OR_RETURN(times.emplace_back(), way());
    }
    return MedianOf(times);
  }

  // Finds the throttle that makes the exchange alone take half as long as the backward pass. All
  // ranks use the throttle of rank 0.
  Status Calibrate() {
    const double target = results_.backward_s / 2;
    double seconds_per_byte = 0;
    for (int i = 0; i <= kCalibrations; ++i) {
      ASSIGN_OR_RETURN(const double exchange, Median([&] { return ExchangeAlone(); }));
      if (i == 0) results_.unthrottled_s = exchange;
      if (i == 0 && exchange >= target && communicator_.rank() == 0) {
        return InvalidArgument("the exchange takes ", exchange, " s without a throttle, but the ",
                               "backward pass only ", results_.backward_s, " s; expected at most ",
                               "half of that; use a larger --batch");
      }
      if (i == kCalibrations) break;
      seconds_per_byte += (target - exchange) / results_.exchanged_bytes;
      seconds_per_byte = std::max(seconds_per_byte, 0.0);
      RETURN_IF_ERROR(communicator_.Broadcast(
          std::as_writable_bytes(std::span(&seconds_per_byte, 1)), /*root=*/0));
      metered_.Throttle(seconds_per_byte);
    }
    results_.bytes_per_s = 1 / seconds_per_byte;
    return OkStatus();
  }

  const Options& options_;
  collectives::Communicator& communicator_;
  MeteredCommunicator metered_;
  strategy::ModelDefinition definition_;
  variables::VariableStore store_;  // for the forward pass alone
  const data::Batch batch_;
  std::unique_ptr<strategy::Replica> replica_;
  std::unique_ptr<strategy::GradientBuckets> buckets_;  // for the exchange alone
  std::unique_ptr<strategy::ModelProgram> forward_;
  Results results_;
  int64_t step_ = 0;
};

// Returns the measurements of the rank with the slowest step.
Results Slowest(const std::vector<Results>& ranks) {
  return *std::ranges::max_element(ranks, {}, &Results::step_s);
}

void Print(const Options& options, const Results& results) {
  const double shown = results.step_s - results.without_exchange_s;
  const double steps = options.steps * kTurns;
  Report("overlap")
      .Add("transport", options.transport)
      .Add("ranks", options.ranks)
      .Add("layers", options.layers)
      .Add("width", options.width)
      .Add("batch", options.batch)
      .Add("hidden", 1 - shown / results.exchange_alone_s)
      .Add("step_s", results.step_s)
      .Add("without_exchange_s", results.without_exchange_s)
      .Add("exchange_alone_s", results.exchange_alone_s)
      .Add("unthrottled_exchange_s", results.unthrottled_s)
      .Add("forward_s", results.forward_s)
      .Add("backward_s", results.backward_s)
      .Add("exchanged_bytes", results.exchanged_bytes)
      .Add("throttle_bytes_per_s", results.bytes_per_s)
      .Print({results.step_s * steps, results.cpu_s * steps * options.ranks});
}

int Main(int argc, char** argv) {
  CLI::App app("How much of the exchange of gradients is hidden behind the backward pass");
  Options options;
  app.add_option("--ranks", options.ranks, "processes")->check(CLI::Range(2, 64));
  app.add_option("--layers", options.layers, "Dense layers")->check(CLI::Range(1, 256));
  app.add_option("--width", options.width, "units of a layer")->check(CLI::Range(1, 8192));
  app.add_option("--batch", options.batch, "examples per rank and step")
      ->check(CLI::Range(1, 65536));
  app.add_option("--transport", options.transport, "how the ranks exchange values")
      ->check(CLI::IsMember({"tcp", "shm"}));
  app.add_option("--steps", options.steps, "steps per turn")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto run = [&](int rank, Sockets sockets) {
    BindToProcessor(rank, options.ranks);
    const auto communicator = MakeCommunicator(rank, std::move(sockets), options.transport);
    StatusOr<Results> results = Rank(options, *communicator).Measure();
    Must(results.status());
    return *results;
  };
  Sockets sockets = ConnectRanks(static_cast<size_t>(options.ranks), options.transport);
  Print(options, Slowest(RunRanks<Results>(std::move(sockets), run)));
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
