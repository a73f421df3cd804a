// What a job trains, as all of its tasks see it: the model, how its batches look, its loss and metrics, its variables and
// their optimizer. Equal in every task, but for what is said otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/ps/definition.h"
#include "runtime/ps/snapshot.h"

namespace tfjob::strategy {

struct ModelDefinition {
  model::Model model;
  // But mode, batch_size and optimizer, which depend on the program, and replica, which is the task's.
  model::BuildOptions build;
  // The model's variables, in its order, the optimizer, and what parameter servers need beside.
  ps::Definition parameters;
  std::vector<model::VariableSpec> variables;  // as parameters.variables
  int64_t seed = 0;
};

// Fills `variables` and `parameters.variables` from model and build. InvalidArgument names layers that do not fit.
Status DefineVariables(ModelDefinition& definition);

// Every variable's first value, every slot's, step 0.
ps::Snapshot InitialState(const ModelDefinition& definition);

// The graph of a mode and batch size; `with_updates` appends the optimizer's (kTrain).
StatusOr<model::BuiltGraph> BuildGraph(const ModelDefinition& definition, model::Mode mode,
                                       int64_t batch_size, bool with_updates);

struct MetricTotals;

// A compiled graph of the model, with the places of its feeds and fetches.
class ModelProgram {
 public:
  // Gradients are announced unless `with_updates`.
  static StatusOr<std::unique_ptr<ModelProgram>> Compile(const ModelDefinition& definition,
                                                         model::Mode mode, int64_t batch_size,
                                                         bool with_updates,
                                                         variables::VariableStore& store,
                                                         const exec::Device& device);

  // kTrain and kEval. `step` counts the updates before this one; `seed` is dropout's. on_gradient(v) when the gradient of
  // variable v is ready.
  Status Run(const data::Batch& batch, int64_t step, int64_t seed,
             absl::FunctionRef<void(int)> on_gradient);
  Status Run(const data::Batch& batch, int64_t step, int64_t seed);

  // Of the last run.
  void AddTotals(MetricTotals& totals) const;
  // The gradient of variable `v`: a place that stays the same over all runs. Empty when it has none.
  std::span<const std::byte> Gradient(int v) const;

  const exec::Program& program() const { return *program_; }

 private:
  ModelProgram() = default;
  void FindPlaces(const ModelDefinition& definition, const model::BuiltGraph& built);

  std::unique_ptr<exec::Program> program_;
  std::vector<exec::Feed> feeds_;
  int features_ = -1, labels_ = -1, step_ = -1,
      seed_ = -1;      // among the feeds; -1: the graph does without
  int loss_sum_ = -1;  // among the fetches
  std::vector<int> metric_sums_;
  std::vector<int> gradient_of_variable_;  // fetch, or -1
  std::vector<int> variable_of_fetch_;     // or -1
  int64_t examples_ = 0;
  int64_t step_value_ = 0, seed_value_ = 0;
};

// The programs of one mode over one store, compiled when a batch size is first seen.
class ProgramCache {
 public:
  ProgramCache(const ModelDefinition& definition, model::Mode mode, bool with_updates,
               variables::VariableStore& store, exec::Device device)
      : definition_(definition),
        mode_(mode),
        with_updates_(with_updates),
        store_(store),
        device_(std::move(device)) {}

  StatusOr<ModelProgram*> ForBatchSize(int64_t batch_size);

 private:
  const ModelDefinition& definition_;
  const model::Mode mode_;
  const bool with_updates_;
  variables::VariableStore& store_;
  const exec::Device device_;
  std::map<int64_t, std::unique_ptr<ModelProgram>> programs_;
};

// Creates the definition's variables in `store`, zeros.
Status CreateVariables(const ModelDefinition& definition, variables::VariableStore& store);
// Copies a snapshot's values (not its slots) into the variables of `store`.
Status LoadValues(const ModelDefinition& definition, const ps::Snapshot& snapshot,
                  variables::VariableStore& store);

}  // namespace tfjob::strategy
