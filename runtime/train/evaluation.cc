#include "runtime/train/evaluation.h"

#include "runtime/train/job_definition.h"
#include "runtime/train/log.h"

namespace tfjob::train {

Evaluation::Evaluation(const config::TrainingConfig& config, strategy::ModelDefinition definition,
                       std::shared_ptr<const data::Dataset> dataset, const exec::Device& device)
    : definition_(std::move(definition)),
      pipeline_options_(EvaluationPipeline(config, definition_)),
      max_batches_(config.eval.steps),
      dataset_(std::move(dataset)),
      store_(device.row_stride),
      programs_(definition_, model::Mode::kEval, /*with_updates=*/false, store_, device) {}

StatusOr<std::unique_ptr<Evaluation>> Evaluation::Create(
    const config::TrainingConfig& config, strategy::ModelDefinition definition,
    std::shared_ptr<const data::Dataset> dataset, const exec::Device& device) {
  if (dataset->feature_shape() != definition.build.feature_shape) {
    return InvalidArgument("data.eval: its examples have the shape ",
                           dataset->feature_shape().ToString(), ", but the model expects ",
                           definition.build.feature_shape.ToString());
  }
  std::unique_ptr<Evaluation> evaluation(
      new Evaluation(config, std::move(definition), std::move(dataset), device));
  RETURN_IF_ERROR(strategy::CreateVariables(evaluation->definition_, evaluation->store_));
  RETURN_IF_ERROR(
      data::Pipeline::Create(evaluation->dataset_, evaluation->pipeline_options_).status());
  return evaluation;
}

StatusOr<strategy::MetricTotals> Evaluation::Run(const state::Snapshot& snapshot,
                                                 const StopSource& stop) {
  RETURN_IF_ERROR(strategy::LoadValues(definition_, snapshot, store_));
  ASSIGN_OR_RETURN(auto pipeline, data::Pipeline::Create(dataset_, pipeline_options_));
  strategy::MetricTotals totals;
  int64_t batches = 0;
  while (const data::Batch* batch = pipeline->Next()) {
    if (stop.requested()) return Cancelled("the evaluation was stopped");
    ASSIGN_OR_RETURN(strategy::ModelProgram * program, programs_.ForBatchSize(batch->size()));
    RETURN_IF_ERROR(program->Run(*batch, snapshot.global_step, definition_.seed));
    program->AddTotals(totals);
    if (++batches == max_batches_) break;
  }
  return totals;
}

Status PublishEvaluation(const strategy::ModelDefinition& definition, int64_t step,
                         const strategy::MetricTotals& totals, ProgressBoard& board,
                         io::EventWriter* events) {
  const auto values = NamedValues(definition, totals);
  std::string text;
  for (const auto& [name, value] : values)
    text += StrCat(text.empty() ? "" : " ", name, "=", value);
  kEvaluationLog.Info("evaluated",
                      {{"step", step}, {"examples", totals.examples}, {"result", text}});
  board.Update([&](progress::Progress& p) {
    p.step = step;
    p.loss = totals.loss();
    p.metrics = {values.begin() + 1, values.end()};
  });
  return events == nullptr ? OkStatus() : events->AddScalars(step, values);
}

std::vector<std::pair<std::string, double>> NamedValues(const strategy::ModelDefinition& definition,
                                                        const strategy::MetricTotals& totals) {
  std::vector<std::pair<std::string, double>> values = {{"loss", totals.loss()}};
  for (size_t i = 0; i < definition.build.metrics.size(); ++i) {
    values.emplace_back(model::Name(definition.build.metrics[i]), totals.metric(i));
  }
  return values;
}

}  // namespace tfjob::train
