// Implements the benchmark case mlp-ranks: data-parallel training of a multi-layer perceptron on
// Fashion-MNIST. Every rank is a process with one compute thread on a processor of its own, which
// takes the steps of the strategy multi_worker_mirrored. In between, the first rank trains alone,
// with the strategy for one device, while the others wait. Both ways alternate, so that both are
// measured under the same load of the machine.
//
// Even if the exchange were perfect, each rank would spend t1 on computing a step and c on the
// exchange, where t1 is the step time of one rank alone and c the CPU time of a rank's all-reduces
// per step. With as many cores as ranks, n ranks can therefore be at most n·t1 / (t1 + c) times as
// fast as one.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/replica.h"
#include "tests/bench/fashion_mnist.h"
#include "tests/bench/metered_communicator.h"
#include "tests/bench/ranks.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

constexpr int kTurns = 5;  // turns of each way; medians are reported
constexpr int kWarmUpSteps = 20;

struct Options {
  int ranks = 2;
  int64_t batch = 128;
  std::vector<int64_t> hidden = {512, 512};
  std::vector<std::string> transports = {"tcp", "shm"};
  int steps = 100;  // steps per turn
};

// The measurements of a rank, per step.
struct Results {
  Times alone;  // only of rank 0
  Times together;
  double exchange_s = 0, exchange_cpu_s = 0;  // of the all-reduces
  double exchanged_bytes = 0;
  double loss = 0;  // of the last step
};

StatusOr<strategy::ModelDefinition> Define(const Options& options) {
  strategy::ModelDefinition definition;
  definition.model = MlpModel(options.hidden);
  definition.build.batch_size = options.batch;
  definition.build.features = model::Features({28, 28});
  definition.build.objectives = {{.loss = {.from_logits = true}}};
  ASSIGN_OR_RETURN(definition.state.optimizer, OptimizerOf("sgd"));
  RETURN_IF_ERROR(strategy::DefineVariables(definition));
  return definition;
}

class Rank {
 public:
  Rank(const Options& options, collectives::Communicator& communicator)
      : options_(options), communicator_(communicator), metered_(communicator) {}

  StatusOr<Results> Measure() {
    RETURN_IF_ERROR(Prepare());
    RETURN_IF_ERROR(Together(kWarmUpSteps));
    RETURN_IF_ERROR(Alone(kWarmUpSteps));
    metered_.TakeMeasurements();
    for (int turn = 0; turn < kTurns; ++turn) {
      RETURN_IF_ERROR(Turn(together_, [&] { return Together(options_.steps); }));
      RETURN_IF_ERROR(Turn(alone_, [&] { return Alone(options_.steps); }));
    }
    const double steps = options_.steps * kTurns;
    const Measurements exchange = metered_.TakeMeasurements();
    return Results{.alone = MedianTimes(alone_),
                   .together = MedianTimes(together_),
                   .exchange_s = exchange.seconds / steps,
                   .exchange_cpu_s = exchange.cpu_seconds / steps,
                   .exchanged_bytes = static_cast<double>(exchange.bytes) / steps,
                   .loss = loss_};
  }

 private:
  Status Prepare() {
    ASSIGN_OR_RETURN(const strategy::ModelDefinition definition, Define(options_));
    const strategy::StrategyOptions common{
        .definition = definition,
        .device = exec::CpuDevice(),
        .replica = communicator_.rank(),
        .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
          return strategy::InitialState(definition);
        }};
    ASSIGN_OR_RETURN(replica_, strategy::Replica::Create(common, /*bytes_per_pack=*/0));
    RETURN_IF_ERROR(replica_->Load(strategy::InitialState(definition)));
    RETURN_IF_ERROR(replica_->Connect(metered_));
    ASSIGN_OR_RETURN(one_device_, strategy::MakeOneDevice({}, common));
    RETURN_IF_ERROR(one_device_->Start().status());
    ASSIGN_OR_RETURN(const auto data, LoadFashionMnist("train"));
    ASSIGN_OR_RETURN(pipeline_,
                     data::Pipeline::Create(data, {.batch_size = options_.batch,
                                                   .worker = communicator_.rank(),
                                                   .workers = communicator_.size(),
                                                   .drop_remainder = true,
                                                   .prefetch = 0,
                                                   .columns = FashionMnistColumns(*data)}));
    return OkStatus();
  }

  // Takes the steps of the group. As in the strategy, the ranks first exchange how many examples
  // each of them has.
  Status Together(int steps) {
    for (int i = 0; i < steps; ++i, ++step_) {
      const data::Batch& batch = *pipeline_->Next();
      std::array<int64_t, 4> announced = {batch.size(), 1, 0, 0};
      RETURN_IF_ERROR(metered_.AllReduce(std::as_writable_bytes(std::span(announced)),
                                         DType::kInt64, collectives::Reduction::kSum));
      RETURN_IF_ERROR(replica_->Compute(batch, step_, {announced[0], announced[1]}));
      RETURN_IF_ERROR(replica_->Reduce());
      strategy::MetricTotals totals;
      RETURN_IF_ERROR(replica_->Apply(step_, totals).status());
      loss_ = totals.loss();
    }
    return OkStatus();
  }

  Status Alone(int steps) {
    if (communicator_.rank() != 0) return OkStatus();
    strategy::MetricTotals totals;
    for (int i = 0; i < steps; ++i)
      RETURN_IF_ERROR(one_device_->Step(*pipeline_->Next(), totals).status());
    return OkStatus();
  }

  // Measures a turn between two barriers, and adds its times per step to `turns`.
  template <typename Run>
  Status Turn(std::vector<Times>& turns, const Run& run) {
    RETURN_IF_ERROR(communicator_.Barrier());
    const Stopwatch watch;
    RETURN_IF_ERROR(run());
    const Times times = watch.Elapsed();
    turns.push_back({times.wall_s / options_.steps, times.cpu_s / options_.steps});
    return communicator_.Barrier();
  }

  static Times MedianTimes(const std::vector<Times>& turns) {
    std::vector<double> walls, cpus;
    for (const Times& turn : turns) {
      walls.push_back(turn.wall_s);
      cpus.push_back(turn.cpu_s);
    }
    return {MedianOf(walls), MedianOf(cpus)};
  }

  const Options& options_;
  collectives::Communicator& communicator_;
  MeteredCommunicator metered_;
  std::unique_ptr<strategy::Replica> replica_;
  std::unique_ptr<strategy::Strategy> one_device_;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::vector<Times> together_, alone_;
  int64_t step_ = 0;
  double loss_ = 0;
};

// Combines the measurements of all ranks: keeps the times of the slowest rank, and averages the
// costs of the exchange.
Results Combine(const std::vector<Results>& ranks) {
  Results all{.alone = ranks[0].alone, .loss = ranks[0].loss};
  const auto count = static_cast<double>(ranks.size());
  for (const Results& rank : ranks) {
    all.together.wall_s = std::max(all.together.wall_s, rank.together.wall_s);
    all.together.cpu_s = std::max(all.together.cpu_s, rank.together.cpu_s);
    all.exchange_s += rank.exchange_s / count;
    all.exchange_cpu_s += rank.exchange_cpu_s / count;
    all.exchanged_bytes += rank.exchanged_bytes / count;
  }
  return all;
}

void Print(const Options& options, const std::string& transport, const Results& results) {
  const double t1 = results.alone.wall_s, step = results.together.wall_s, ranks = options.ranks;
  const double steps = options.steps * kTurns;
  const double bound = ranks * t1 / (t1 + results.exchange_cpu_s), speedup = ranks * t1 / step;
  const auto batch = static_cast<double>(options.batch);
  Report("mlp-ranks")
      .Add("what", "one rank")
      .Add("batch", options.batch)
      .Add("samples_per_s", batch / t1)
      .Add("t1_s", t1)
      .Add("t1_cpu_s", results.alone.cpu_s)
      .Print({t1 * steps, results.alone.cpu_s * steps});
  Report("mlp-ranks")
      .Add("what", "ranks")
      .Add("transport", transport)
      .Add("ranks", options.ranks)
      .Add("batch", options.batch)
      .Add("samples_per_s", ranks * batch / step)
      .Add("step_s", step)
      .Add("step_cpu_s", results.together.cpu_s)
      .Add("exchange_s", results.exchange_s)
      .Add("exchange_cpu_s", results.exchange_cpu_s)
      .Add("exchanged_bytes", results.exchanged_bytes)
      .Add("t1_s", t1)
      .Add("bound", bound)
      .Add("speedup", speedup)
      .Add("share_of_bound", speedup / bound)
      .Add("final_loss", results.loss)
      .Print({step * steps, results.together.cpu_s * steps * ranks});
}

int Main(int argc, char** argv) {
  CLI::App app("Data-parallel training of a multi-layer perceptron", "mlp-ranks");
  Options options;
  app.add_option("--ranks", options.ranks, "processes")->check(CLI::Range(2, 64));
  app.add_option("--batch", options.batch, "examples per rank and step")
      ->check(CLI::Range(1, 16384));
  app.add_option("--hidden", options.hidden, "units of the hidden layers; default: 512,512")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536));
  app.add_option("--transport", options.transports, "how the ranks exchange values; default: both")
      ->check(CLI::IsMember({"tcp", "shm"}));
  app.add_option("--steps", options.steps, "steps per turn")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  for (const std::string& transport : options.transports) {
    const auto run = [&](int rank, Sockets sockets) {
      BindToProcessor(rank, options.ranks);
      const auto communicator = MakeCommunicator(rank, std::move(sockets), transport);
      StatusOr<Results> results = Rank(options, *communicator).Measure();
      Must(results.status());
      return *results;
    };
    Sockets sockets = ConnectRanks(static_cast<size_t>(options.ranks), transport);
    Print(options, transport, Combine(RunRanks<Results>(std::move(sockets), run)));
  }
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
