// One pass of a model over the evaluation data.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/stop.h"
#include "runtime/config/training_config.h"
#include "runtime/io/event_writer.h"
#include "runtime/strategy/strategy.h"
#include "runtime/train/progress_board.h"

namespace tfjob::train {

// Owned by one thread.
class Evaluation {
 public:
  // InvalidArgument for data that does not fit the model: the shape of its examples, labels out of range.
  static StatusOr<std::unique_ptr<Evaluation>> Create(const config::TrainingConfig& config,
                                                      strategy::ModelDefinition definition,
                                                      std::shared_ptr<const data::Dataset> dataset,
                                                      const exec::Device& device);

  // Loss and metrics of the snapshot's values. Cancelled when `stop` is asked for.
  StatusOr<strategy::MetricTotals> Run(const ps::Snapshot& snapshot, const StopSource& stop);

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

// Tells the log, the task's progress and, when not null, `events` the result for the checkpoint of `step`.
Status PublishEvaluation(const strategy::ModelDefinition& definition, int64_t step,
                         const strategy::MetricTotals& totals, ProgressBoard& board,
                         io::EventWriter* events);

// "loss", "accuracy", …: the totals by the names that summaries and progress show.
std::vector<std::pair<std::string, double>> NamedValues(const strategy::ModelDefinition& definition,
                                                        const strategy::MetricTotals& totals);

}  // namespace tfjob::train
