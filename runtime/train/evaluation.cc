#include "runtime/train/evaluation.h"

#include <algorithm>
#include <span>

#include "runtime/data/pipeline.h"
#include "runtime/io/stored_tensor.h"
#include "runtime/strategy/model/model_program.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/log.h"
#include "runtime/train/model_dir/summary_writer.h"

namespace tfjob::train {
namespace {

// Checks that the variables have the same shapes for the evaluation data as for the training data.
// Lengths in the data that do not affect these shapes may differ.
Status ExpectEqualVariables(const model::Model& model,
                            const std::vector<graph::TensorType>& training,
                            const std::vector<graph::TensorType>& evaluation) {
  ASSIGN_OR_RETURN(const auto expected, model::Variables(model, training));
  ASSIGN_OR_RETURN(const auto needed, model::Variables(model, evaluation));
  const bool equal = std::ranges::equal(
      expected, needed, [](const auto& x, const auto& y) { return x.shape == y.shape; });
  for (size_t i = 0; i < training.size() && !equal; ++i) {
    if (training[i] == evaluation[i]) continue;
    return InvalidArgument("data.eval: its examples have the shape ",
                           evaluation[i].shape.ToString(), ", but the model expects ",
                           training[i].shape.ToString());
  }
  return OkStatus();
}

// Copies the rows of a table into `rows`. Find has already checked the indices.
Status ReadRows(const state::Snapshot& snapshot, int table, const io::StoredTensor* stored,
                std::span<const int64_t> indices, std::span<std::byte> rows) {
  if (stored != nullptr) return stored->ReadRows(indices, rows);
  const state::VariableState& state = snapshot.variables[static_cast<size_t>(table)];
  const size_t row = rows.size() / indices.size();
  for (size_t i = 0; i < indices.size() && indices[i] >= 0; ++i) {
    const std::span<std::byte> to = rows.subspan(i * row, row);
    if (!state.streamed.empty()) {
      RETURN_IF_ERROR(state.streamed[0]->Read(indices[i] * static_cast<int64_t>(row), to));
      continue;
    }
    std::ranges::copy(state.value.bytes().subspan(static_cast<size_t>(indices[i]) * row, row),
                      to.begin());
  }
  return OkStatus();
}

}  // namespace

struct Evaluation::State {
  State(strategy::ModelDefinition model, const exec::Device& device)
      : definition(std::move(model)),
        store(device.row_stride, device.runtime),
        programs(definition, model::Mode::kEval, /*with_updates=*/false, store, device) {}

  const strategy::ModelDefinition definition;
  int64_t batches = 0;    // in an evaluation
  std::string agreement;  // see Evaluation::agreement
  variables::VariableStore store;
  strategy::ProgramCache programs;
  std::unique_ptr<data::Pipeline> pipeline;
};

Evaluation::Evaluation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Evaluation::~Evaluation() = default;

StatusOr<std::unique_ptr<Evaluation>> Evaluation::Create(
    const config::TrainingConfig& config, const strategy::ModelDefinition& definition,
    std::shared_ptr<const data::Source> source, const exec::Device& device) {
  ASSIGN_OR_RETURN(const BatchColumns columns,
                   ColumnsOf(config, Split::kEval, definition.model, *source));
  strategy::ModelDefinition own = definition;
  columns.Describe(own.build);
  RETURN_IF_ERROR(
      ExpectEqualVariables(definition.model, definition.build.features, own.build.features));
  ASSIGN_OR_RETURN(const data::PipelineOptions options, EvaluationPipeline(config, own, *source));
  if (config.strategy.table_bytes > 0) {
    ASSIGN_OR_RETURN(own.tables, strategy::SeparableTables(own, model::Mode::kEval,
                                                           config.strategy.table_bytes));
  }
  if (const std::string left_out = source->LeftOut(); !left_out.empty())
    kEvaluationLog.Warning(left_out, {{"key", KeyOf(Split::kEval)}});
  auto state = std::make_unique<State>(std::move(own), device);
  RETURN_IF_ERROR(strategy::CreateVariables(state->definition, state->store));
  const int64_t examples = source->size();
  const uint64_t fingerprint = source->fingerprint();
  ASSIGN_OR_RETURN(state->pipeline, data::Pipeline::Create(std::move(source), options));
  state->batches = state->pipeline->batches_per_epoch();
  if (config.eval.steps > 0) state->batches = std::min(state->batches, config.eval.steps);
  state->agreement = StrCat("validation examples: ", examples, "\nfingerprint: ", fingerprint,
                            "\nbatch size: ", options.batch_size, "\nbatches: ", state->batches);
  return std::unique_ptr<Evaluation>(new Evaluation(std::move(state)));
}

const strategy::ModelDefinition& Evaluation::definition() const {
  return state_->definition;
}

const std::vector<int>& Evaluation::tables() const {
  return state_->definition.tables;
}

const std::string& Evaluation::agreement() const {
  return state_->agreement;
}

StatusOr<strategy::MetricTotals> Evaluation::Run(const state::Snapshot& snapshot,
                                                 const StopSource& stop,
                                                 std::span<const io::StoredTensor> stored) {
  strategy::MetricTotals totals;
  RETURN_IF_ERROR(RunPart({}, snapshot, stop, totals, stored));
  return totals;
}

Status Evaluation::RunPart(const strategy::ValidationPart& part, const state::Snapshot& snapshot,
                           const StopSource& stop, strategy::MetricTotals& totals,
                           std::span<const io::StoredTensor> stored) {
  State& s = *state_;
  const data::Part batches = data::PartOf(s.batches, part.part, part.parts);
  if (batches.size == 0) return OkStatus();
  RETURN_IF_ERROR(strategy::LoadValues(s.definition, snapshot, s.store));
  s.pipeline->Seek(batches.begin);
  for (int64_t i = 0; i < batches.size; ++i) {
    const data::Batch* batch = s.pipeline->Next();
    if (batch == nullptr) break;
    if (stop.requested()) return Cancelled("the evaluation was stopped");
    if (part.needed && !part.needed()) return OkStatus();
    RETURN_IF_ERROR(RunBatch(*batch, snapshot, totals, stored));
  }
  return s.pipeline->status();
}

Status Evaluation::RunBatch(const data::Batch& batch, const state::Snapshot& snapshot,
                            strategy::MetricTotals& totals,
                            std::span<const io::StoredTensor> stored) {
  State& s = *state_;
  ASSIGN_OR_RETURN(strategy::ModelProgram * program, s.programs.For(batch));
  RETURN_IF_ERROR(program->FindRows(batch, snapshot.global_step, s.definition.seed));
  for (size_t i = 0; i < tables().size(); ++i) {
    RETURN_IF_ERROR(ReadRows(snapshot, tables()[i], stored.empty() ? nullptr : &stored[i],
                             program->Rows(tables()[i]), program->RowValues(tables()[i])));
  }
  RETURN_IF_ERROR(program->Run(batch, snapshot.global_step, s.definition.seed));
  program->AddTotals(totals);
  return OkStatus();
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
  std::span<const double> sums = totals.metric_sums;
  for (const model::MetricFetch& metric : metrics) {
    const size_t count = std::min(static_cast<size_t>(metric.sums), sums.size());
    values.emplace_back(metric.name,
                        model::MetricValue(metric.metric, sums.first(count), totals.examples));
    sums = sums.subspan(count);
  }
  return values;
}

}  // namespace tfjob::train
