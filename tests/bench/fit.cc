// Implements the benchmark case fit: compares the CPU time of CompiledModel::Fit with that of the
// trainer's loop, on the same model and the same data. Both run in this process, in alternating
// pairs. The measured part starts at the end of the first epoch, so that it contains neither the
// reading of the files nor the compilation of programs.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/stop.h"
#include "runtime/config/training_config.h"
#include "runtime/train/run_guest.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"
#include "tests/bench/fit_api.h"
#include "tests/bench/report.h"

namespace tfjob::bench {

double ProcessCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

namespace {

constexpr int64_t kExamples = 60'000;

// Notes the CPU time after the last step of the first epoch, and at the end of the run.
class EpochTimes : public train::RunGuest {
 public:
  explicit EpochTimes(int64_t steps_per_epoch) : steps_per_epoch_(steps_per_epoch) {}

  Status OnStart(train::Trainer&) override { return OkStatus(); }
  Status OnStep(train::Trainer&, const strategy::MetricTotals&,
                const strategy::StepOutcome& outcome) override {
    if (outcome.global_step == steps_per_epoch_) first_ = ProcessCpuSeconds();
    return OkStatus();
  }
  Status OnEnd(train::Trainer&) override {
    last_ = ProcessCpuSeconds();
    return OkStatus();
  }
  double Measured() const { return last_ - first_; }

 private:
  const int64_t steps_per_epoch_;
  double first_ = 0, last_ = 0;
};

std::string TrainingFile(const FitOptions& options) {
  std::string layers = "{InputLayer: {batch_shape: [null, 28, 28]}}, Flatten, ";
  for (const int64_t units : options.hidden)
    layers += StrCat("{Dense: {units: ", units, ", activation: relu}}, ");
  return StrCat("model: {layers: [", layers, "{Dense: {units: 10}}]}\n",
                "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n",
                "optimizer: {name: sgd, learning_rate: 0.1}\n",
                "data: {train: {format: idx, scale: 1/255, images: ", options.folder,
                "/train-images-idx3-ubyte.gz, labels: ", options.folder,
                "/train-labels-idx1-ubyte.gz}}\n", "batch_size: ", options.batch,
                "\nepochs: ", options.epochs, "\nthreads: 1\nstrategy: {name: one_device}\n");
}

// Trains with the trainer's loop, and returns the CPU time of the measured epochs.
StatusOr<double> CpuSecondsOfTrainer(const FitOptions& options) {
  train::TaskOptions task;
  ASSIGN_OR_RETURN(task.config, config::ParseTrainingConfig(TrainingFile(options), "fit"));
  const StopSource stop;
  train::TaskContext context(std::move(task), stop, RealClock());
  EpochTimes times((kExamples + options.batch - 1) / options.batch);
  RETURN_IF_ERROR(train::RunTask(context, &times));
  return times.Measured();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void Print(const FitOptions& options, const std::vector<double>& ours,
           const std::vector<double>& trainer, const Times& times) {
  const auto samples = static_cast<double>((options.epochs - 1) * kExamples);
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / trainer[i]);
  Report("fit")
      .Add("batch", options.batch)
      .Add("epochs", options.epochs)
      .Add("pairs", options.pairs)
      .Add("fit_cpu_s_per_sample", Median(ours) / samples)
      .Add("trainer_cpu_s_per_sample", Median(trainer) / samples)
      .Add("median_ratio", Median(ratios))
      .Add("least_ratio", *std::ranges::min_element(ratios))
      .Add("largest_ratio", *std::ranges::max_element(ratios))
      .Print(times);
}

Status Run(const FitOptions& options) {
  FitOptions short_run = options;
  short_run.epochs = 2;
  CpuSecondsOfFit(short_run);  // warms up, and sets the log level
  std::vector<double> ours, trainer;
  const Stopwatch watch;
  for (int pair = 0; pair < options.pairs; ++pair) {
    const auto fit = [&] { ours.push_back(CpuSecondsOfFit(options)); };
    if (pair % 2 == 0) fit();
    ASSIGN_OR_RETURN(trainer.emplace_back(), CpuSecondsOfTrainer(options));
    if (pair % 2 == 1) fit();
  }
  Print(options, ours, trainer, watch.Elapsed());
  return OkStatus();
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::FitOptions options;
  const char* folder = std::getenv("FASHION_MNIST_DIR");
  options.folder = folder != nullptr ? folder : "/usr/share/datasets/fashion-mnist";
  CLI::App app("The CPU time of Fit, compared with that of the trainer's loop", "fit");
  app.add_option("--hidden", options.hidden, "units of the hidden layers; default: 512,512")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536));
  app.add_option("--batch", options.batch, "examples per step")->check(CLI::Range(1, 60000));
  app.add_option("--epochs", options.epochs, "epochs of a run; the first one is not measured")
      ->check(CLI::Range(2, 1000));
  app.add_option("--pairs", options.pairs, "runs of each kind")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  const tfjob::Status status = tfjob::bench::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "fit: %s\n", status.ToString().c_str());
  return 1;
}
