#include "runtime/api/loops/batch_trainer.h"

#include <numeric>
#include <utility>

#include "runtime/api/session.h"
#include "runtime/model/apply_layer.h"
#include "runtime/strategy/select.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::api {
namespace {

void DescribeArrays(const Tensor& only, const std::map<std::string, Tensor>& named,
                    std::string& text) {
  const auto add = [&](const std::string& name, const Tensor& array) {
    if (!array.present()) return;
    const tfjob::Tensor& tensor = Access::Data(array);
    text += StrCat(name, " ", tfjob::Name(tensor.dtype()));
    for (int axis = 1; axis < tensor.shape().rank(); ++axis)
      text += StrCat(" ", tensor.shape().dim(axis));
    text += "\n";
  };
  add("", only);
  for (const auto& [name, array] : named) add(name, array);
  text += ";\n";
}

// Returns a description that is the same for all batches with the same arrays, types and shapes of
// examples.
std::string FormOf(const Batch& batch) {
  std::string text;
  DescribeArrays(batch.x, batch.inputs, text);
  DescribeArrays(batch.y, batch.targets, text);
  DescribeArrays(batch.sample_weight, batch.sample_weights, text);
  return text;
}

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

tfjob::Status CheckAlone(const CompiledData& model) {
  if (IsAlone(model.strategy().tf_config)) return OkStatus();
  return Unimplemented("a job of several tasks cannot take single steps yet; use Fit, or the ",
                       "devices of one task (Strategy::Mirrored)");
}

// Refuses policies that adjust the scale of the loss. With such a policy, numbers that are not
// finite are normal, but Step would report them as an error.
tfjob::Status CheckPolicies(const CompiledData& model) {
  if (!HasPolicy(model.internal_model(), tfjob::model::DTypePolicy::kMixedFloat16))
    return tfjob::OkStatus();
  return Unimplemented("a model with the dtype policy mixed_float16 cannot take single steps yet; ",
                       "use mixed_bfloat16, or Fit");
}

void AddBatch(const strategy::MetricTotals& batch, strategy::MetricTotals& totals) {
  // The number of sums has changed if only `totals` or only `batch` has sample weights. In this
  // case, start over.
  if (totals.metric_sums.size() != batch.metric_sums.size()) totals = {};
  totals.metric_sums.resize(batch.metric_sums.size());
  totals.loss_sum += batch.loss_sum;
  totals.examples += batch.examples;
  for (size_t i = 0; i < batch.metric_sums.size(); ++i)
    totals.metric_sums[i] += batch.metric_sums[i];
}

// Returns the trainer in `holder`. Replaces it first if it does not accept batches of this form.
StatusOr<BatchTrainer*> TrainerFor(CompiledData& model, NotCopied<BatchTrainer>& holder,
                                   const Batch& batch, const ClassWeights& class_weight) {
  RETURN_IF_ERROR(model.ExpectNoFit());
  BatchTrainer* const held = holder.get();
  if (held != nullptr && held->Takes(model, batch, class_weight)) return held;
  RETURN_IF_ERROR(model.Settle());
  ASSIGN_OR_RETURN(auto made, BatchTrainer::Create(model, batch, class_weight));
  holder.set(std::move(made));
  return holder.get();
}

struct Trained {
  strategy::MetricTotals totals;
  BatchTrainer* trainer = nullptr;
};

StatusOr<Trained> TrainOn(CompiledData& model, const Batch& batch,
                          const ClassWeights& class_weight) {
  ASSIGN_OR_RETURN(BatchTrainer * trainer, TrainerFor(model, model.trainer, batch, class_weight));
  ASSIGN_OR_RETURN(strategy::MetricTotals totals, trainer->Train(model, batch));
  AddBatch(totals, model.on_batches);
  return Trained{std::move(totals), trainer};
}

StatusOr<BatchReport> StepOn(CompiledData& model, const Batch& batch,
                             const ClassWeights& class_weight) {
  ASSIGN_OR_RETURN(const Trained trained, TrainOn(model, batch, class_weight));
  return BatchReport{
      .loss = trained.totals.loss(),
      .metrics = Metrics(train::NamedValues(trained.trainer->definition(), trained.totals)),
      .examples = trained.totals.examples,
      .step = trained.trainer->step()};
}

StatusOr<Metrics> TrainAndReport(CompiledData& model, const Batch& batch,
                                 const ClassWeights& class_weight) {
  ASSIGN_OR_RETURN(const Trained trained, TrainOn(model, batch, class_weight));
  return Metrics(train::NamedValues(trained.trainer->definition(), model.on_batches));
}

StatusOr<Metrics> TestAndReport(CompiledData& model, const Batch& batch) {
  ASSIGN_OR_RETURN(BatchTrainer * trainer, TrainerFor(model, model.tester, batch, {}));
  ASSIGN_OR_RETURN(const strategy::MetricTotals totals, trainer->Test(model, batch));
  AddBatch(totals, model.on_batches);
  return Metrics(train::NamedValues(trainer->definition(), model.on_batches));
}

}  // namespace

BatchTrainer::BatchTrainer(train::TaskOptions task)
    : context_(std::move(task), NoStop(), RealClock()) {}

StatusOr<std::shared_ptr<BatchTrainer>> BatchTrainer::Create(CompiledData& model,
                                                             const Batch& batch,
                                                             const ClassWeights& class_weight) {
  RETURN_IF_ERROR(CheckAlone(model));
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
  strategy::TrainingTask task{.config = model.config.strategy,
                              .tf_config = context_.tf_config(),
                              .identity = context_.identity(),
                              .credentials = context_.credentials(),
                              .global_batch = definition_.build.batch_size};
  ASSIGN_OR_RETURN(strategy_,
                   strategy::MakeStrategy(std::move(task),
                                          {.definition = definition_,
                                           .device = std::move(device),
                                           .on_non_finite = context_.config().on_non_finite,
                                           .provide_state = [this](const state::Snapshot*)
                                               -> StatusOr<state::Snapshot> { return *loaded_; }}));
  return OkStatus();
}

tfjob::Status BatchTrainer::Read(const CompiledData& model, const Batch& batch) {
  config::TrainingConfig config;
  ASSIGN_OR_RETURN(const auto source, SourceOf(batch, model, config));
  const int64_t rows = source->size();
  RETURN_IF_ERROR(Annotate(CheckBatchSize("examples", rows), "the batch"));
  ASSIGN_OR_RETURN(const auto reader, source->Open(columns_));
  std::vector<tfjob::data::NamedTensor>& tensors = batch_.tensors;
  if (tensors.empty() || batch_.size() != rows) {
    tensors.clear();
    for (const tfjob::data::Column& column : columns_)
      tensors.push_back(
          {column.name, tfjob::Tensor(column.dtype, model::Batched(rows, column.shape))});
  }
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
  loaded_ = nullptr;
}

StatusOr<strategy::MetricTotals> BatchTrainer::Train(CompiledData& model, const Batch& batch) {
  RETURN_IF_ERROR(Read(model, batch));
  if (strategy_ == nullptr) RETURN_IF_ERROR(MakeStrategy(model));
  if (model.newest.get() != this) {
    RETURN_IF_ERROR(model.Settle());
    RETURN_IF_ERROR(Load(model.values));
  }
  strategy::MetricTotals totals;
  const StatusOr<strategy::StepOutcome> outcome = strategy_->Step(batch_, totals);
  if (!outcome.ok()) {
    Reset(model);
    return outcome.status();
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

StatusOr<strategy::MetricTotals> BatchTrainer::Test(CompiledData& model, const Batch& batch) {
  RETURN_IF_ERROR(Read(model, batch));
  RETURN_IF_ERROR(model.Settle());
  if (programs_ == nullptr) RETURN_IF_ERROR(MakeEvaluation());
  if (evaluated_ != model.values) {
    evaluated_ = nullptr;
    RETURN_IF_ERROR(strategy::LoadValues(definition_, *model.values, *store_));
    evaluated_ = model.values;
  }
  ASSIGN_OR_RETURN(strategy::ModelProgram * program, programs_->ForBatchSize(batch_.size()));
  RETURN_IF_ERROR(program->Run(batch_, model.values->global_step, definition_.seed));
  strategy::MetricTotals totals;
  program->AddTotals(totals);
  return totals;
}

Result<BatchReport> CompiledModel::Step(const Batch& batch, const ClassWeights& class_weight) {
  return ToPublic(StepOn(*data_, batch, class_weight));
}

Result<Metrics> CompiledModel::TrainOnBatch(const Batch& batch, const ClassWeights& class_weight) {
  return ToPublic(TrainAndReport(*data_, batch, class_weight));
}

Result<Metrics> CompiledModel::TestOnBatch(const Batch& batch) {
  return ToPublic(TestAndReport(*data_, batch));
}

void CompiledModel::ResetMetrics() {
  data_->on_batches = {};
}

}  // namespace tfjob::api
