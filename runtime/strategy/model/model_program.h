// Runs a model's graph on batches. There is one compiled program per mode and batch shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/data/pipeline.h"
#include "runtime/exec/program.h"
#include "runtime/strategy/model/metric_totals.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/strategy/model/table_rows.h"

namespace tfjob::strategy {

// A compiled graph of the model, with the positions of its feeds and fetches.
class ModelProgram {
 public:
  // Compiles the graph for `mode`. In kTrain, Run passes the contributions to on_contribution,
  // unless `with_updates` is set. Creates the variables of the totals that the store lacks, if the
  // definition says that the graph adds up totals. `exchange`: see exec::CompileOptions. With
  // `places_contributions`, the caller must call PlaceContributions. The dense contribution to
  // variable v stays in the memory of a device that is not immediate if keeps(v).
  static StatusOr<std::unique_ptr<ModelProgram>> Compile(
      const ModelDefinition& definition, model::Mode mode, int64_t batch_size, bool with_updates,
      variables::VariableStore& store, const exec::Device& device,
      exec::Exchange* exchange = nullptr, bool places_contributions = false,
      const std::function<bool(int)>& keeps = nullptr);

  // Runs the program on a batch, in kTrain or kEval. The tensors of the batch have the names of the
  // graph's feeds (model/build.h); the graph need not have all of these feeds. `step` is the number
  // of updates before this one, and `seed` is the seed for dropout. Calls on_contribution(v) as
  // soon as the contribution to variable v is ready.
  Status Run(const data::Batch& batch, int64_t step, int64_t seed,
             absl::FunctionRef<void(int)> on_contribution);
  Status Run(const data::Batch& batch, int64_t step, int64_t seed);
  // Starts a run and returns without waiting for it (exec::Program::Start). The batch may change as
  // soon as Start returns. Only for a device that is not immediate.
  StatusOr<exec::Ticket> Start(const data::Batch& batch, int64_t step, int64_t seed);

  // Sets the scale of the loss in the next runs, for a model that computes in float16. The scale is
  // 1 until then.
  void set_loss_scale(double scale) { loss_scale_value_ = static_cast<float>(scale); }

  // Sets the factor by which the gradients of the next runs are multiplied, if the definition says
  // that they are weighted (model::BuildOptions::weighted). The weight is 1 until then.
  void set_loss_weight(double weight) { loss_weight_value_ = static_cast<float>(weight); }

  // Makes the next runs compute dense contributions directly in the memory `memory_of(v)`, which
  // has the size of variable `v` and is aligned to 64, where the program can do so
  // (exec::CompileOptions::placed). Other contributions stay in the program's memory. Call this
  // before the first run, and whenever the memory moves. A run writes to the memory until it calls
  // on_contribution(v), and does not access it afterwards.
  void PlaceContributions(absl::FunctionRef<std::span<std::byte>(int)> memory_of);

  // Finds the rows of the definition's tables that the batch reads. If there are tables, call
  // FindRows before Run, and write the values of the rows Rows(v) to RowValues(v). See TableRows.
  Status FindRows(const data::Batch& batch, int64_t step, int64_t seed);
  std::span<const int64_t> Rows(int v) const;
  std::span<std::byte> RowValues(int v);

  // Returns the number of examples of a batch.
  int64_t examples() const { return examples_; }
  // Adds the totals of the last run to `totals`. Not for a program that adds them up on the device
  // (DeviceTotals).
  void AddTotals(MetricTotals& totals) const;
  // Returns the sum of the losses of the last run's examples.
  double loss_sum() const;
  // Returns the contribution to variable `v` (a gradient, or a value to assign), or an empty span
  // if there is none. If the contribution stays on the device, so does the result. The address
  // stays the same across runs, unless PlaceContributions changes it.
  std::span<const std::byte> Contribution(int v) const;
  // If the contribution to variable `v` consists of rows of a gradient
  // (model::Change::kGradientRows), returns the indices of the rows. Unused rows at the end of the
  // contribution have index -1. For any other contribution, returns an empty span. The address
  // stays the same across runs.
  std::span<const int64_t> Indices(int v) const;

  const exec::Program& program() const { return *program_; }

 private:
  ModelProgram() = default;
  void FindPlaces(const ModelDefinition& definition, const model::BuiltGraph& built);
  void SetFeeds(const data::Batch& batch, int64_t step, int64_t seed);

  std::unique_ptr<TableRows> rows_;  // null if there are no tables
  std::unique_ptr<exec::Program> program_;
  std::vector<exec::Feed> feeds_;
  int step_ = -1, seed_ = -1;  // indices of the feeds; -1 if the graph has no such feed
  int loss_sum_ = -1;          // index of the fetch
  std::vector<int> metric_sums_;
  std::vector<int> contribution_of_variable_;  // index of the fetch, or -1
  std::vector<int> indices_of_variable_;       // index of the fetch, or -1
  std::vector<int> variable_of_fetch_;         // index of the variable, or -1
  int64_t examples_ = 0;
  int64_t step_value_ = 0, seed_value_ = 0;
  float loss_scale_value_ = 1, loss_weight_value_ = 1;
};

// Caches the programs for one mode: one program per combination of batch size and example lengths.
// All programs use the variables of the same store. Compiles a program when it is first requested.
class ProgramCache {
 public:
  ProgramCache(const ModelDefinition& definition, model::Mode mode, bool with_updates,
               variables::VariableStore& store, exec::Device device);

  // Sets the exchange of the programs that are compiled from now on (exec::CompileOptions). It must
  // outlive the cache. Without it, the programs exchange nothing.
  void set_exchange(exec::Exchange* exchange) { exchange_ = exchange; }
  // Makes the programs that are compiled from now on compute contributions in memory of the caller,
  // who must call ModelProgram::PlaceContributions.
  void set_places_contributions() { places_contributions_ = true; }
  // Makes programs keep the contributions to the variables v for which keeps(v) is true in the
  // memory of a device that is not immediate. Null: they keep none. Drops all programs.
  void set_keeps(std::function<bool(int)> keeps) {
    keeps_ = std::move(keeps);
    entries_.clear();
  }

  // Returns the program for examples of the definition's shapes.
  StatusOr<ModelProgram*> ForBatchSize(int64_t batch_size);
  // Returns the program for batches with the size and the shapes of `batch`. Its examples may be
  // shorter than the definition's (data::Source::buckets). Allocates nothing if the program exists.
  StatusOr<ModelProgram*> For(const data::Batch& batch);
  // Returns whether the program for this batch exists already.
  bool Has(const data::Batch& batch) { return FindFor(batch) != nullptr; }
  // Drops all programs, because the definition has changed.
  void Clear() { entries_.clear(); }

 private:
  struct Entry {
    int64_t batch_size = 0;
    std::vector<Shape> shapes;  // of one example, by the index of the feed
    std::unique_ptr<ModelProgram> program;
  };
  // Returns the entry for this size whose shapes `fits(i, shape)` accepts, where i is the index of
  // the feed, or null if there is none.
  template <typename Fits>
  Entry* Find(int64_t batch_size, const Fits& fits);
  Entry* FindFor(const data::Batch& batch);
  StatusOr<ModelProgram*> Add(const ModelDefinition& definition, int64_t batch_size);

  const ModelDefinition& definition_;
  const model::Mode mode_;
  const bool with_updates_;
  variables::VariableStore& store_;
  const exec::Device device_;
  exec::Exchange* exchange_ = nullptr;
  bool places_contributions_ = false;
  std::function<bool(int)> keeps_;
  const std::vector<std::string> feeds_;  // the inputs, the labels and the sample weights
  std::vector<Entry> entries_;
};

}  // namespace tfjob::strategy
