// Trains a model on Fashion-MNIST in one process, in the same way as the trainer: model → graph →
// program. The timed part includes drawing, gathering and scaling batches in the same thread, but
// not reading files.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "runtime/model/model.h"
#include "tests/bench/report.h"

namespace tfjob::bench {

inline constexpr int64_t kClasses = 10;

struct FashionMnistOptions {
  int64_t batch = 128;
  int threads = 1;
  std::string optimizer = "sgd";
  double epochs = 1;
  bool print_program = false;
};

// A benchmark case and its model, which takes images [28,28] and returns kClasses logits.
struct FashionMnistCase {
  std::string name;
  std::string shape;  // for the report: "784-512-10"
  model::Model model;
};

// Adds one flag per option.
void AddFlags(CLI::App& app, FashionMnistOptions& options);
// Trains, prints one JSON line and returns the exit status of the program.
int RunFashionMnist(const FashionMnistCase& what, const FashionMnistOptions& options);

}  // namespace tfjob::bench
