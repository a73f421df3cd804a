#include "runtime/train/job/job_inputs.h"

#include "runtime/strategy/model/model_definition.h"
#include "runtime/strategy/positions.h"
#include "runtime/train/job/batch_source.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::train {

StatusOr<model::Model> ModelOf(const JobInputs& inputs, const config::TrainingConfig& config) {
  if (inputs.model != nullptr) return *inputs.model;
  return ReadModel(config.model);
}

StatusOr<std::shared_ptr<const data::Source>> DataOf(const JobInputs& inputs,
                                                     const config::TrainingConfig& config,
                                                     Split split, const model::Model& model) {
  const auto& given = split == Split::kTrain ? inputs.train : inputs.eval;
  if (given != nullptr) return given;
  RETURN_IF_ERROR(CheckAugment(config, model));
  ASSIGN_OR_RETURN(std::shared_ptr<const data::Source> source, LoadDataset(config, split, model));
  return BatchSource(config, split, model, std::move(source));
}

StatusOr<state::Snapshot> StartOf(const JobInputs& inputs, const config::TrainingConfig& config,
                                  const strategy::ModelDefinition& definition,
                                  std::span<const int> streamed, const cluster::Task& task) {
  if (inputs.start == nullptr) return StartState(config, definition, streamed);
  RETURN_IF_ERROR(state::CheckFits(*inputs.start, definition.state));
  state::Snapshot start = *inputs.start;
  // Record the position of this task alone; a strategy with several tasks distributes the position
  // among them.
  start.ledger = strategy::PositionRecord({task.type, task.index}, inputs.drawn);
  return start;
}

}  // namespace tfjob::train
