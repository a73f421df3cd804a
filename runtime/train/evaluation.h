// Runs one pass of a model over the evaluation data.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/stop.h"
#include "runtime/config/training_config.h"
#include "runtime/io/event_writer.h"
#include "runtime/strategy/model_program.h"
#include "runtime/train/progress_board.h"

namespace tfjob::train {

// Owned by one thread.
class Evaluation {
 public:
  // Returns InvalidArgument for data that does not fit the model: the shape of its examples, or
  // labels out of range.
  static StatusOr<std::unique_ptr<Evaluation>> Create(const config::TrainingConfig& config,
                                                      strategy::ModelDefinition definition,
                                                      std::shared_ptr<const data::Dataset> dataset,
                                                      const exec::Device& device);

  // Returns loss and metrics for the snapshot's values. Returns Cancelled if `stop` is requested.
  StatusOr<strategy::MetricTotals> Run(const state::Snapshot& snapshot, const StopSource& stop);

  const strategy::ModelDefinition& definition() const { return definition_; }

 private:
  Evaluation(const config::TrainingConfig& config, strategy::ModelDefinition definition,
             std::shared_ptr<const data::Dataset> dataset, const exec::Device& device);

  const strategy::ModelDefinition definition_;
  const data::PipelineOptions pipeline_options_;
  const int64_t max_batches_;  // 0: all
  const std::shared_ptr<const data::Dataset> dataset_;
  variables::VariableStore store_;
  strategy::ProgramCache programs_;
};

// Reports the result for the checkpoint of `step` to the log, to the task's progress and, if not
// null, to `events`.
Status PublishEvaluation(const strategy::ModelDefinition& definition, int64_t step,
                         const strategy::MetricTotals& totals, ProgressBoard& board,
                         io::EventWriter* events);

// Returns the totals under the names that summaries and progress show: "loss", "accuracy", …
std::vector<std::pair<std::string, double>> NamedValues(const strategy::ModelDefinition& definition,
                                                        const strategy::MetricTotals& totals);

}  // namespace tfjob::train
