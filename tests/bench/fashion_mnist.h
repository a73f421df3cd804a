// Trains a model on Fashion-MNIST in one process, in the same way as the trainer: builds a graph
// from the model, and a program from the graph. The measured part includes drawing, gathering and
// scaling batches in the same thread, but not reading files.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/column.h"
#include "runtime/data/dataset.h"
#include "runtime/model/model.h"
#include "runtime/optimizer/optimizer.h"
#include "tests/bench/report.h"

namespace tfjob::bench {

inline constexpr int64_t kClasses = 10;

struct FashionMnistOptions {
  int64_t batch = 128;
  int threads = 1;
  std::string optimizer = "sgd";
  double epochs = 1;
  // The number of batches that another thread prepares ahead; 0: the thread that trains prepares
  // them.
  int64_t prefetch = 0;
  bool print_program = false;
};

// Describes a benchmark case. The model must accept images [28,28] and return kClasses logits.
struct FashionMnistCase {
  std::string name;
  std::string shape;  // for the report: "784-512-10"
  model::Model model;
};

// Loads the split "train" or "t10k".
StatusOr<std::shared_ptr<const data::Dataset>> LoadFashionMnist(const std::string& split);
// Returns the columns of a batch: pixels in [0, 1], and class numbers.
std::vector<data::Column> FashionMnistColumns(const data::Dataset& dataset);
// Returns the optimizer with this name; SGD has the learning rate 0.1.
StatusOr<optimizer::Optimizer> OptimizerOf(const std::string& name);
// Returns a multi-layer perceptron with these hidden layers.
model::Model MlpModel(const std::vector<int64_t>& hidden);

// Adds one command-line flag per option.
void AddFlags(CLI::App& app, FashionMnistOptions& options);
// Trains the model and prints one JSON line. Returns the exit status of the program.
int RunFashionMnist(const FashionMnistCase& what, const FashionMnistOptions& options);

}  // namespace tfjob::bench
