#include "runtime/train/evaluation.h"

#include "runtime/data/pipeline.h"
#include "runtime/strategy/model_program.h"
#include "runtime/train/job_definition.h"
#include "runtime/train/log.h"
#include "runtime/train/summary_writer.h"

namespace tfjob::train {

struct Evaluation::State {
  State(const config::TrainingConfig& config, strategy::ModelDefinition model,
        std::shared_ptr<const data::Dataset> examples, const exec::Device& device)
      : definition(std::move(model)),
        pipeline_options(EvaluationPipeline(config, definition)),
        max_batches(config.eval.steps),
        dataset(std::move(examples)),
        store(device.row_stride),
        programs(definition, model::Mode::kEval, /*with_updates=*/false, store, device) {}

  const strategy::ModelDefinition definition;
  const data::PipelineOptions pipeline_options;
  const int64_t max_batches;  // 0: all
  const std::shared_ptr<const data::Dataset> dataset;
  variables::VariableStore store;
  strategy::ProgramCache programs;
};

Evaluation::Evaluation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Evaluation::~Evaluation() = default;

StatusOr<std::unique_ptr<Evaluation>> Evaluation::Create(
    const config::TrainingConfig& config, const strategy::ModelDefinition& definition,
    std::shared_ptr<const data::Dataset> dataset, const exec::Device& device) {
  const Shape& expected = definition.build.features[0].shape;
  if (dataset->feature_shape() != expected) {
    return InvalidArgument("data.eval: its examples have the shape ",
                           dataset->feature_shape().ToString(), ", but the model expects ",
                           expected.ToString());
  }
  auto state = std::make_unique<State>(config, definition, std::move(dataset), device);
  RETURN_IF_ERROR(strategy::CreateVariables(state->definition, state->store));
  RETURN_IF_ERROR(data::Pipeline::Create(state->dataset, state->pipeline_options).status());
  return std::unique_ptr<Evaluation>(new Evaluation(std::move(state)));
}

const strategy::ModelDefinition& Evaluation::definition() const {
  return state_->definition;
}

StatusOr<strategy::MetricTotals> Evaluation::Run(const state::Snapshot& snapshot,
                                                 const StopSource& stop) {
  State& s = *state_;
  RETURN_IF_ERROR(strategy::LoadValues(s.definition, snapshot, s.store));
  ASSIGN_OR_RETURN(auto pipeline, data::Pipeline::Create(s.dataset, s.pipeline_options));
  strategy::MetricTotals totals;
  int64_t batches = 0;
  while (const data::Batch* batch = pipeline->Next()) {
    if (stop.requested()) return Cancelled("the evaluation was stopped");
    ASSIGN_OR_RETURN(strategy::ModelProgram * program, s.programs.ForBatchSize(batch->size()));
    RETURN_IF_ERROR(program->Run(*batch, snapshot.global_step, s.definition.seed));
    program->AddTotals(totals);
    if (++batches == s.max_batches) break;
  }
  return totals;
}

void PublishEvaluation(const strategy::ModelDefinition& definition, int64_t step,
                       const strategy::MetricTotals& totals, ProgressBoard& board,
                       SummaryWriter* summaries) {
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
  if (summaries != nullptr) summaries->AddScalars(step, values);
}

std::vector<std::pair<std::string, double>> NamedValues(const strategy::ModelDefinition& definition,
                                                        const strategy::MetricTotals& totals) {
  std::vector<std::pair<std::string, double>> values = {{"loss", totals.loss()}};
  const auto metrics = model::MetricsOf(definition.model, definition.build);
  for (size_t i = 0; i < metrics.size(); ++i)
    values.emplace_back(metrics[i].name, totals.metric(i));
  return values;
}

}  // namespace tfjob::train
