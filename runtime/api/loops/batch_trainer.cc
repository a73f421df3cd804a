#include "runtime/api/loops/batch_trainer.h"

#include <numeric>
#include <utility>

#include "runtime/api/loops/batch_form.h"
#include "runtime/base/fnv1a.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/build.h"
#include "runtime/strategy/select.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::api {
namespace {

// Returns the arrays of the batch as a source. Sets data.train of `config`.
StatusOr<std::shared_ptr<const tfjob::data::Source>> SourceOf(const Batch& batch,
                                                              const CompiledData& model,
                                                              config::TrainingConfig& config) {
  const Dataset dataset = batch;
  const DatasetData& data = Access::Data(dataset);
  RETURN_IF_ERROR(Annotate(data.error, "data.train"));
  config.data.train = data.source;
  return train::ArraySource(data.source, train::Split::kTrain, model.internal_model(), data.arrays);
}

StatusOr<config::TrainingConfig> ConfigOfBatches(const CompiledData& model,
                                                 const ClassWeights& class_weight) {
  config::TrainingConfig config = model.config;
  // A batch that leads to infinite or NaN values must change nothing.
  config.on_non_finite = config::OnNonFinite::kSkip;
  if (class_weight.empty()) return config;
  Json weights = Json::object();
  for (const auto& [label, weight] : class_weight) weights[StrCat(label)] = weight;
  Json keys = Json::object();
  keys["class_weight"] = std::move(weights);
  RETURN_IF_ERROR(config::SetOpenKeys(config, keys));
  return config;
}

// Refuses policies that adjust the scale of the loss. With such a policy, numbers that are not
// finite are normal, but Step would report them as an error.
tfjob::Status CheckPolicies(const CompiledData& model) {
  if (!HasPolicy(model.internal_model(), tfjob::model::DTypePolicy::kMixedFloat16))
    return tfjob::OkStatus();
  return Unimplemented("a model with the dtype policy mixed_float16 cannot take single steps yet; ",
                       "use mixed_bfloat16, or Fit");
}

}  // namespace

BatchTrainer::BatchTrainer(train::TaskOptions task)
    : context_(std::move(task), NoStop(), RealClock()) {}

StatusOr<std::shared_ptr<BatchTrainer>> BatchTrainer::Create(CompiledData& model,
                                                             const Batch& batch,
                                                             const ClassWeights& class_weight,
                                                             bool together) {
  if (together && RowsOf(batch) == 0) {
    ASSIGN_OR_RETURN(const Batch one, OneExampleLike(batch));
    return Create(model, one, class_weight, together);
  }
  RETURN_IF_ERROR(CheckPolicies(model));
  ASSIGN_OR_RETURN(config::TrainingConfig config, ConfigOfBatches(model, class_weight));
  ASSIGN_OR_RETURN(const auto source, SourceOf(batch, model, config));
  RETURN_IF_ERROR(Annotate(CheckBatchSize("examples", source->size()), "the batch"));
  config.global_batch_size = source->size();
  ASSIGN_OR_RETURN(
      strategy::ModelDefinition definition,
      train::DefineModel(config, train::Split::kTrain, *source, 1, model.internal_model()));
  RETURN_IF_ERROR(model.Build(definition.build.features));
  RETURN_IF_ERROR(state::CheckFits(*model.values, definition.state));
  config.model = {};
  std::shared_ptr<BatchTrainer> trainer(new BatchTrainer(TaskOptionsOf(model, config)));
  ASSIGN_OR_RETURN(const train::BatchColumns columns,
                   train::ColumnsOf(config, train::Split::kTrain, definition.model, *source));
  trainer->together_ = together;
  trainer->form_ = FormOf(batch);
  trainer->scale_ = batch.scale;
  trainer->class_weight_ = class_weight;
  trainer->optimizer_ = model.definition->state.optimizer;
  trainer->columns_ = columns.All();
  trainer->definition_ = std::move(definition);
  return trainer;
}

bool BatchTrainer::Takes(const CompiledData& model, const Batch& batch,
                         const ClassWeights& class_weight) const {
  return batch.scale == scale_ && class_weight == class_weight_ &&
         model.definition->state.optimizer == optimizer_ && FormOf(batch) == form_;
}

tfjob::Status BatchTrainer::MakeStrategy(const CompiledData& model) {
  ASSIGN_OR_RETURN(exec::Device device, context_.device());
  strategy::StrategyOptions options{
      .definition = definition_,
      .device = std::move(device),
      .on_non_finite = context_.config().on_non_finite,
      .provide_state = [this](const state::Snapshot*) -> StatusOr<state::Snapshot> {
        return *loaded_;
      }};
  config::StrategyConfig config = model.config.strategy;
  if (together_) {
    options.compression = config.compression;
    options.replica = cluster::TrainingRank(context_.tf_config(), context_.tf_config().task);
    ASSIGN_OR_RETURN(auto made, GroupStrategy::Create(std::move(options), config.bytes_per_pack));
    group_strategy_ = made.get();
    strategy_ = std::move(made);
    return OkStatus();
  }
  // A task that trains alone forms no group.
  if (config.kind == config::StrategyKind::kMultiWorkerMirrored)
    config.kind = config::StrategyKind::kOneDevice;
  strategy::TrainingTask task{.config = std::move(config),
                              .tf_config = context_.tf_config(),
                              .identity = context_.identity(),
                              .credentials = context_.credentials(),
                              .global_batch = definition_.build.batch_size};
  ASSIGN_OR_RETURN(strategy_, strategy::MakeStrategy(std::move(task), std::move(options)));
  return OkStatus();
}

tfjob::Status BatchTrainer::Read(const CompiledData& model, const Batch& batch) {
  const int64_t rows = RowsOf(batch);
  const bool empty = together_ && rows == 0;
  if (!empty) RETURN_IF_ERROR(Annotate(CheckBatchSize("examples", rows), "the batch"));
  std::vector<tfjob::data::NamedTensor>& tensors = batch_.tensors;
  if (tensors.empty() || batch_.size() != rows) {
    tensors.clear();
    for (const tfjob::data::Column& column : columns_)
      tensors.push_back(
          {column.name, tfjob::Tensor(column.dtype, model::Batched(rows, column.shape))});
  }
  if (empty) return OneExampleLike(batch).status();
  config::TrainingConfig config;
  ASSIGN_OR_RETURN(const auto source, SourceOf(batch, model, config));
  ASSIGN_OR_RETURN(const auto reader, source->Open(columns_));
  std::vector<int64_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  return reader->Read(all, tensors);
}

tfjob::Status BatchTrainer::Load(const std::shared_ptr<const state::Snapshot>& values) {
  if (values == loaded_) return OkStatus();
  loaded_ = values;
  const StatusOr<strategy::StepOutcome> started = strategy_->Start();
  if (!started.ok()) loaded_ = nullptr;
  RETURN_IF_ERROR(started.status());
  step_ = started->global_step;
  return OkStatus();
}

// After an error, the devices of a group refuse every further step, so the next step recreates
// them. If an update has failed halfway, the values cannot be taken; the strategy is then kept, and
// reports the same error again.
void BatchTrainer::Reset(CompiledData& model) {
  if (model.newest.get() == this && !model.Settle().ok()) return;
  strategy_ = nullptr;
  group_strategy_ = nullptr;
  loaded_ = nullptr;
}

tfjob::Status BatchTrainer::PrepareStep(CompiledData& model, const Batch& batch) {
  RETURN_IF_ERROR(Read(model, batch));
  if (strategy_ == nullptr) RETURN_IF_ERROR(MakeStrategy(model));
  return model.newest.get() == this ? OkStatus() : model.Settle();
}

StatusOr<strategy::MetricTotals> BatchTrainer::TakeStep(CompiledData& model) {
  if (model.newest.get() != this) RETURN_IF_ERROR(Load(model.values));
  strategy::MetricTotals totals;
  const StatusOr<strategy::StepOutcome> outcome = strategy_->Step(batch_, totals);
  const tfjob::Status stepped = outcome.ok() ? strategy_->TakeTotals(totals) : outcome.status();
  if (!stepped.ok()) {
    Reset(model);
    return stepped;
  }
  if (outcome->skipped) {
    return FailedPrecondition("step ", step_ + 1, ": the loss or a gradient is not finite, so the ",
                              "step has changed nothing; check the examples, or use a smaller ",
                              "learning rate");
  }
  step_ = outcome->global_step;
  model.newest.set(model.trainer.shared());
  return totals;
}

StatusOr<std::shared_ptr<const state::Snapshot>> BatchTrainer::Take() {
  ASSIGN_OR_RETURN(state::Snapshot taken, strategy_->TakeSnapshot());
  taken.ledger.clear();
  loaded_ = std::make_shared<const state::Snapshot>(std::move(taken));
  return loaded_;
}

tfjob::Status BatchTrainer::MakeEvaluation() {
  ASSIGN_OR_RETURN(const exec::Device device, context_.device());
  store_ = std::make_unique<variables::VariableStore>(device.row_stride, device.runtime);
  RETURN_IF_ERROR(strategy::CreateVariables(definition_, *store_));
  programs_ = std::make_unique<strategy::ProgramCache>(definition_, model::Mode::kEval,
                                                       /*with_updates=*/false, *store_, device);
  return OkStatus();
}

tfjob::Status BatchTrainer::PrepareTest(CompiledData& model, const Batch& batch) {
  RETURN_IF_ERROR(Read(model, batch));
  RETURN_IF_ERROR(model.Settle());
  return programs_ == nullptr ? MakeEvaluation() : OkStatus();
}

size_t BatchTrainer::sums() const {
  size_t sums = 0;
  for (const tfjob::model::MetricFetch& metric :
       tfjob::model::MetricsOf(definition_.model, definition_.build))
    sums += static_cast<size_t>(metric.sums);
  return sums;
}

StatusOr<strategy::MetricTotals> BatchTrainer::Test(CompiledData& model) {
  strategy::MetricTotals totals{.metric_sums = std::vector<double>(sums())};
  if (batch_.size() == 0) return totals;
  if (evaluated_ != model.values) {
    evaluated_ = nullptr;
    RETURN_IF_ERROR(strategy::LoadValues(definition_, *model.values, *store_));
    evaluated_ = model.values;
  }
  ASSIGN_OR_RETURN(strategy::ModelProgram * program, programs_->ForBatchSize(batch_.size()));
  RETURN_IF_ERROR(program->Run(batch_, model.values->global_step, definition_.seed));
  program->AddTotals(totals);
  return totals;
}

StatusOr<uint64_t> BatchTrainer::Digest() const {
  Fnv1a digest;
  digest.Add(StrCat("scale: ", scale_));
  for (const auto& [label, weight] : class_weight_) digest.Add(StrCat(label, ": ", weight));
  if (group_strategy_ != nullptr) return digest.Add(group_strategy_->agreement()).hash();
  ASSIGN_OR_RETURN(const model::BuiltGraph evaluation,
                   strategy::BuildGraph(definition_, model::Mode::kEval, /*batch_size=*/1,
                                        /*with_updates=*/false));
  return digest.Add(evaluation.graph.ToString()).hash();
}

}  // namespace tfjob::api
