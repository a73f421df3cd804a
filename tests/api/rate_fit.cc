// Trains with a learning rate that a callback changes, alone or as a task of a job, and prints the
// weights.
//
//   rate_fit [--sync] [--pause-at STEP FILE] [--backup FOLDER]
//
// With --sync, trains with synchronous parameter servers.
// With --pause-at, prints a line after this step, and continues once the file exists.
#include <tfjob/tfjob.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/api/programs.h"

namespace {

tj::LambdaCallback PauseAt(int64_t step, const std::string& file) {
  return {.on_batch_end = [=](tj::FitControl& run, int64_t, const tj::Metrics&) {
    if (run.step() != step) return tj::Status();
    std::printf("paused\n");
    std::fflush(stdout);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!std::filesystem::exists(file)) {
      if (std::chrono::steady_clock::now() > deadline)
        return tj::Status(tj::StatusCode::kDeadlineExceeded, "no " + file);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return tj::Status();
  }};
}

}  // namespace

int main(int argc, char** argv) {
  tj::FitOptions options = Quietly(9);
  options.batch_size = 16;
  // Each rate depends on the one before, so it matters that each is set once.
  options.callbacks = {tj::LearningRateScheduler{
      [](int64_t epoch, double rate) { return epoch == 0 ? 0.3 : rate * 0.7; }}};
  tj::Strategy strategy = tj::Strategy::FromEnvironment();
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--pause-at" && i + 2 < argc) {
      options.callbacks.push_back(PauseAt(std::stoll(argv[i + 1]), argv[i + 2]));
      i += 2;
    } else if (flag == "--backup" && i + 1 < argc) {
      options.callbacks.push_back(
          tj::BackupAndRestore{.backup_dir = argv[++i], .save_freq = 8, .delete_checkpoint = true});
    } else if (flag == "--sync") {
      strategy = tj::Strategy::ParameterServer({.mode = "sync"});
    } else {
      std::fprintf(stderr, "unknown flag %s\n", argv[i]);
      return 2;
    }
  }
  tj::Session session(strategy, {.threads = 1});
  tj::CompiledModel model =
      session
          .Compile(Classifier(), {.optimizer = tj::SGD{.learning_rate = 0.5, .momentum = 0.9},
                                  .loss = tj::SparseCategoricalCrossentropy{.from_logits = true}})
          .value();
  model.Fit(Points(96), options).value();
  std::printf("trained %lld steps:", static_cast<long long>(model.step()));
  for (const std::vector<float>& weights : WeightsOf(model))
    for (const float weight : weights) std::printf(" %.9g", static_cast<double>(weight));
  std::printf("\n");
  return 0;
}
