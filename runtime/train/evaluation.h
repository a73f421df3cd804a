// Evaluates a model in one pass over the evaluation data.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/stop.h"
#include "runtime/config/training_config.h"
#include "runtime/strategy/model/metric_totals.h"
#include "runtime/strategy/model/validation.h"
#include "runtime/train/progress_board.h"

namespace tfjob::io {
class StoredTensor;
}  // namespace tfjob::io
namespace tfjob::data {
struct Batch;
class Source;
}  // namespace tfjob::data
namespace tfjob::exec {
struct Device;
}  // namespace tfjob::exec
namespace tfjob::state {
struct Snapshot;
}  // namespace tfjob::state
namespace tfjob::strategy {
struct ModelDefinition;
}  // namespace tfjob::strategy

namespace tfjob::train {

class SummaryWriter;

// Owned by one thread.
class Evaluation {
 public:
  // Returns InvalidArgument if the data is incompatible with the model: if the examples have a
  // different shape, or the labels are out of range.
  static StatusOr<std::unique_ptr<Evaluation>> Create(const config::TrainingConfig& config,
                                                      const strategy::ModelDefinition& definition,
                                                      std::shared_ptr<const data::Source> source,
                                                      const exec::Device& device);

  ~Evaluation();

  // Returns the loss and metrics of the model with the snapshot's values. Reads only those rows of
  // a table that a batch needs. If `stored` is not empty, it must have one element per table, and
  // the rows are read from these elements; otherwise, they are read from the snapshot. Returns
  // Cancelled if `stop` is requested, and any error from reading `stored` or the data.
  StatusOr<strategy::MetricTotals> Run(const state::Snapshot& snapshot, const StopSource& stop,
                                       std::span<const io::StoredTensor> stored = {});
  // Evaluates consecutive whole batches, so that the sums of all parts are those of Run, except
  // that they are added in another order. Adds them to `totals`. See Validation::evaluate;
  // otherwise like Run.
  Status RunPart(const strategy::ValidationPart& part, const state::Snapshot& snapshot,
                 const StopSource& stop, strategy::MetricTotals& totals,
                 std::span<const io::StoredTensor> stored = {});
  // Describes the examples and the batches. See Validation::agreement.
  const std::string& agreement() const;
  // Returns the indices of the variables that are tables (strategy.table_bytes), in ascending
  // order.
  const std::vector<int>& tables() const;

  const strategy::ModelDefinition& definition() const;

 private:
  struct State;  // the model, its programs and its data
  explicit Evaluation(std::unique_ptr<State> state);
  Status RunBatch(const data::Batch& batch, const state::Snapshot& snapshot,
                  strategy::MetricTotals& totals, std::span<const io::StoredTensor> stored);

  const std::unique_ptr<State> state_;
};

// Writes the result for the checkpoint of `step` to the log, to the task's progress and to
// `summaries`, which may be null.
void PublishEvaluation(const strategy::ModelDefinition& definition, int64_t step,
                       const strategy::MetricTotals& totals, ProgressBoard& board,
                       SummaryWriter* summaries);

// Returns the mean loss and metrics under the names that summaries and progress use: "loss",
// "accuracy", …
std::vector<std::pair<std::string, double>> NamedValues(const strategy::ModelDefinition& definition,
                                                        const strategy::MetricTotals& totals);

}  // namespace tfjob::train
