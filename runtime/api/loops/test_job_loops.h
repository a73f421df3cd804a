// Runs the tasks of a job with a custom training loop as threads, for tests, and defines models and
// data for such loops. Private to the tests of this package.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/api/compiled_state.h"
#include "runtime/api/layers.h"
#include "runtime/api/losses.h"
#include "runtime/api/optimizers.h"
#include "runtime/data/pipeline.h"
#include "runtime/train/test_job.h"

namespace tfjob::api::loops_test {

using cluster::Task;
using Symbols = std::vector<Symbol>;
using Values = std::shared_ptr<const state::Snapshot>;

inline std::vector<Task> Tasks(int tasks) {
  std::vector<Task> made = {{"chief", 0}};
  for (int i = 1; i < tasks; ++i) made.push_back({"worker", i - 1});
  return made;
}

// One task of a job, or a process that trains alone.
struct Place {
  Strategy strategy = Strategy::OneDevice();
  int rank = 0, ranks = 1;
};

// Calls the body for each task of a job, each on its own thread.
inline void OnAllTasks(const std::vector<Task>& tasks,
                       const std::function<void(const Place&)>& body,
                       const config::StrategyConfig& config = {}, const std::string& device = {}) {
  train::TestCluster cluster;
  std::vector<Place> places;
  for (const Task& task : tasks) {
    StrategyData data;
    data.tf_config = cluster.Static(task, tasks);
    data.job = {"uid", 0};
    data.config = config;
    data.device = device;
    places.push_back({Access::MakeStrategy(std::move(data)), static_cast<int>(places.size()),
                      static_cast<int>(tasks.size())});
  }
  std::vector<std::thread> threads;
  for (const Place& place : places) threads.emplace_back([&] { body(place); });
  for (std::thread& thread : threads) thread.join();
}

// Returns this task's rows of a batch of generated numbers from -1 to 1.
inline Tensor Rows(const Place& place, int64_t seed, int64_t rows, int64_t width) {
  const auto part = tfjob::data::PartOf(rows, place.rank, place.ranks);
  std::vector<float> values;
  for (int64_t i = part.begin * width; i < (part.begin + part.size) * width; ++i) {
    const int64_t number = (seed * 7919 + i) * 104729 % 2003;
    values.push_back(static_cast<float>(number) / 1001 - 1);
  }
  return Tensor::Of({part.size, width}, values).value();
}

inline Tensor Labels(const Place& place, int64_t seed, int64_t rows) {
  const auto part = tfjob::data::PartOf(rows, place.rank, place.ranks);
  std::vector<int64_t> values;
  for (int64_t i = part.begin; i < part.begin + part.size; ++i)
    values.push_back((seed + i * i) % 3);
  return Tensor::Of({part.size}, values).value();
}

inline Values ValuesOf(const CompiledModel& model) {
  EXPECT_TRUE(Access::Shared(model)->Settle().ok());
  return Access::Shared(model)->values;
}

inline void SetValues(const CompiledModel& model, const Values& values) {
  EXPECT_TRUE(Access::Shared(model)->Settle().ok());
  Access::Shared(model)->values = values;
}

inline void ExpectSameBits(const Values& one, const Values& other) {
  ASSERT_EQ(one->variables.size(), other->variables.size());
  EXPECT_EQ(one->global_step, other->global_step);
  for (size_t v = 0; v < one->variables.size(); ++v) {
    const state::VariableState &a = one->variables[v], &b = other->variables[v];
    EXPECT_TRUE(std::ranges::equal(a.value.bytes(), b.value.bytes())) << v;
    ASSERT_EQ(a.slots.size(), b.slots.size());
    for (size_t s = 0; s < a.slots.size(); ++s)
      EXPECT_TRUE(std::ranges::equal(a.slots[s].bytes(), b.slots[s].bytes())) << v << " " << s;
  }
}

inline CompiledModel Classifier(const Place& place, const Optimizer& optimizer) {
  return Session(place.strategy, {.seed = 1, .threads = 1})
      .Compile(
          Sequential({Dense{.units = 16, .activation = "relu"}, Dense{.units = 3}}, "classifier"),
          {.optimizer = optimizer,
           .loss = SparseCategoricalCrossentropy{.from_logits = true},
           .metrics = {"accuracy"}})
      .value();
}

// A linear model of one input, and the function of TensorFlow's guide that trains it.
struct LinearLoop {
  explicit LinearLoop(const Place& place, const SessionOptions& options = {.threads = 1})
      : session(place.strategy, options),
        model(session
                  .Compile(Sequential({Input{.shape = {1}}, Dense{.units = 1}}, "linear"),
                           {.optimizer = SGD{.learning_rate = 0.2}})
                  .value()) {}

  Function TrainStep() {
    return session
        .Function({{.shape = {1}, .name = "x"}, {.shape = {1}, .name = "y"}},
                  [&](Step& step, const Symbols& in) {
                    const Symbol errors = ops::Square(step.Call(model, in[0]) - in[1]);
                    const Symbol loss = ops::Sum(errors) / step.NumExamples();
                    step.Apply(model, step.Gradients(loss, step.TrainableVariables(model)));
                    step.Return("mean_loss", step.Reduce(Reduction::kMean, errors, 0));
                    step.Return("sum", step.Reduce(Reduction::kSum, in[0], 0));
                    step.Return("replicas", step.Reduce(Reduction::kSum, ops::Sum(in[0] * 0) + 1));
                    step.Return("mean_of_sums", step.Reduce(Reduction::kMean, ops::Sum(in[0])));
                    step.Return("errors", errors);
                  })
        .value();
  }

  Session session;
  CompiledModel model;
};

inline Tensor Column(const std::vector<float>& values) {
  return Tensor::Of({static_cast<int64_t>(values.size()), 1}, values).value();
}

}  // namespace tfjob::api::loops_test
