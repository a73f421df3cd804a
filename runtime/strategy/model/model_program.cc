#include "runtime/strategy/model/model_program.h"

#include <algorithm>

namespace tfjob::strategy {
namespace {

int IndexOf(const ModelDefinition& definition, const std::string& variable) {
  const auto spec = std::ranges::find(definition.variables, variable, &model::VariableSpec::name);
  return static_cast<int>(spec - definition.variables.begin());
}

// Creates the variables to which the graph adds the loss and the metrics.
Status CreateTotals(const model::BuiltGraph& built, variables::VariableStore& store) {
  for (size_t i = 0; i < built.totals.size(); ++i) {
    const std::string name =
        model::TotalName(i == 0 ? model::kLossSum : built.metrics[i - 1].fetch);
    if (store.Find(name) != nullptr) continue;
    RETURN_IF_ERROR(
        store.Create(name, DType::kFloat64, built.totals[i], variables::Kind::kCounter).status());
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<ModelProgram>> ModelProgram::Compile(
    const ModelDefinition& definition, model::Mode mode, int64_t batch_size, bool with_updates,
    variables::VariableStore& store, const exec::Device& device, exec::Exchange* exchange,
    bool places_contributions, const std::function<bool(int)>& keeps) {
  ASSIGN_OR_RETURN(model::BuiltGraph built, BuildGraph(definition, mode, batch_size, with_updates));
  exec::CompileOptions options{.exchange = exchange};
  if (mode == model::Mode::kPredict) {
    for (size_t i = 0; i < definition.model.outputs.size(); ++i)
      options.fetches.push_back(model::PredictionName(definition.model, i));
  } else {
    options.fetches = {model::kLossSum};
    RETURN_IF_ERROR(CreateTotals(built, store));
    for (const model::MetricFetch& metric : built.metrics)
      if (built.totals.empty()) options.fetches.push_back(metric.fetch);
    for (const model::Contribution& contribution : built.contributions) {
      if (!with_updates) options.announced.push_back(contribution.fetch);
      if (!contribution.indices.empty()) options.fetches.push_back(contribution.indices);
      if (places_contributions && contribution.indices.empty())
        options.placed.push_back(contribution.fetch);
      if (keeps && contribution.indices.empty() &&
          keeps(IndexOf(definition, contribution.variable)))
        options.kept.push_back(contribution.fetch);
    }
    options.fetches.insert(options.fetches.end(), options.announced.begin(),
                           options.announced.end());
  }
  std::unique_ptr<ModelProgram> program(new ModelProgram());
  ASSIGN_OR_RETURN(program->program_, exec::Compile(built.graph, store, device, options));
  if (!built.tables.empty()) {
    ASSIGN_OR_RETURN(program->rows_, TableRows::Compile(definition, built, device));
  }
  program->FindPlaces(definition, built);
  return program;
}

void ModelProgram::FindPlaces(const ModelDefinition& definition, const model::BuiltGraph& built) {
  examples_ = built.examples;
  feeds_.resize(program_->feeds().size());
  step_ = program_->FindFeed(model::kStep);
  seed_ = program_->FindFeed(model::kSeed);
  if (step_ >= 0) feeds_[static_cast<size_t>(step_)] = exec::Feed::Of(step_value_);
  if (seed_ >= 0) feeds_[static_cast<size_t>(seed_)] = exec::Feed::Of(seed_value_);
  const int loss_scale = program_->FindFeed(model::kLossScale);
  if (loss_scale >= 0) feeds_[static_cast<size_t>(loss_scale)] = exec::Feed::Of(loss_scale_value_);
  const int loss_weight = program_->FindFeed(model::kLossWeight);
  if (loss_weight >= 0)
    feeds_[static_cast<size_t>(loss_weight)] = exec::Feed::Of(loss_weight_value_);
  if (rows_ != nullptr) rows_->SetFeeds(*program_, feeds_);
  loss_sum_ = program_->FindFetch(model::kLossSum);
  for (const model::MetricFetch& metric : built.metrics)
    if (built.totals.empty()) metric_sums_.push_back(program_->FindFetch(metric.fetch));
  contribution_of_variable_.assign(definition.variables.size(), -1);
  indices_of_variable_.assign(definition.variables.size(), -1);
  variable_of_fetch_.assign(program_->fetches().size(), -1);
  for (const model::Contribution& contribution : built.contributions) {
    const auto v = static_cast<size_t>(IndexOf(definition, contribution.variable));
    const int fetch = program_->FindFetch(contribution.fetch);
    contribution_of_variable_[v] = fetch;
    indices_of_variable_[v] = program_->FindFetch(contribution.indices);
    if (fetch >= 0) variable_of_fetch_[static_cast<size_t>(fetch)] = static_cast<int>(v);
  }
}

void ModelProgram::SetFeeds(const data::Batch& batch, int64_t step, int64_t seed) {
  step_value_ = step;
  seed_value_ = seed;
  for (const data::NamedTensor& tensor : batch.tensors) {
    const int feed = program_->FindFeed(tensor.name);
    if (feed >= 0) feeds_[static_cast<size_t>(feed)] = exec::Feed::Of(tensor.value);
  }
}

StatusOr<exec::Ticket> ModelProgram::Start(const data::Batch& batch, int64_t step, int64_t seed) {
  SetFeeds(batch, step, seed);
  return program_->Start(feeds_);
}

Status ModelProgram::Run(const data::Batch& batch, int64_t step, int64_t seed,
                         absl::FunctionRef<void(int)> on_contribution) {
  SetFeeds(batch, step, seed);
  return program_->Run(
      feeds_, [&](int fetch) { on_contribution(variable_of_fetch_[static_cast<size_t>(fetch)]); });
}

void ModelProgram::PlaceContributions(absl::FunctionRef<std::span<std::byte>(int)> memory_of) {
  for (size_t v = 0; v < contribution_of_variable_.size(); ++v) {
    const int fetch = contribution_of_variable_[v];
    if (fetch >= 0 && program_->Places(fetch))
      program_->Place(fetch, memory_of(static_cast<int>(v)));
  }
}

Status ModelProgram::FindRows(const data::Batch& batch, int64_t step, int64_t seed) {
  return rows_ == nullptr ? OkStatus() : rows_->Find(batch, step, seed);
}

std::span<const int64_t> ModelProgram::Rows(int v) const {
  return rows_ == nullptr ? std::span<const int64_t>() : rows_->Indices(v);
}

std::span<std::byte> ModelProgram::RowValues(int v) {
  return rows_ == nullptr ? std::span<std::byte>() : rows_->Values(v);
}

Status ModelProgram::Run(const data::Batch& batch, int64_t step, int64_t seed) {
  return Run(batch, step, seed, [](int) {});
}

double ModelProgram::loss_sum() const {
  return static_cast<double>(program_->Fetch<float>(loss_sum_)[0]);
}

void ModelProgram::AddTotals(MetricTotals& totals) const {
  totals.examples += examples_;
  totals.loss_sum += loss_sum();
  size_t at = 0;
  for (const int fetch : metric_sums_) {
    for (const float sum : program_->Fetch<float>(fetch)) {
      if (at == totals.metric_sums.size()) totals.metric_sums.push_back(0);
      totals.metric_sums[at++] += static_cast<double>(sum);
    }
  }
}

std::span<const std::byte> ModelProgram::Contribution(int v) const {
  const int fetch = contribution_of_variable_[static_cast<size_t>(v)];
  if (fetch < 0) return {};
  return program_->Keeps(fetch) ? program_->KeptBytes(fetch) : program_->FetchBytes(fetch);
}

std::span<const int64_t> ModelProgram::Indices(int v) const {
  const int fetch = indices_of_variable_[static_cast<size_t>(v)];
  if (fetch < 0) return {};
  return program_->Fetch<int64_t>(fetch);
}

namespace {

std::vector<std::string> FeedNames(const model::Model& model) {
  std::vector<std::string> names = model::InputNames(model);
  const size_t outputs = model.outputs.size();
  for (size_t i = 0; i < outputs; ++i) names.push_back(model::LabelsName(model, i));
  for (size_t i = 0; i < outputs; ++i) names.push_back(model::SampleWeightsName(model, i));
  return names;
}

// Returns the shape of one example for each of the FeedNames; Shape() for sample weights that are
// not fed.
std::vector<Shape> FeedShapes(const model::BuildOptions& build) {
  std::vector<Shape> shapes;
  for (const model::TensorType& feature : build.features) shapes.push_back(feature.shape);
  for (const model::Objective& objective : build.objectives)
    shapes.push_back(objective.labels.shape);
  for (const model::Objective& objective : build.objectives)
    shapes.push_back(objective.sample_weights.value_or(Shape()));
  return shapes;
}

// Returns whether each example in a batch's tensor has this shape.
bool HasShape(const Tensor& batch, const Shape& example) {
  const std::span<const int64_t> dims = batch.shape().dims();
  return std::ranges::equal(dims.subspan(1), example.dims());
}

Shape ExampleShape(const Tensor& batch) {
  const std::vector<int64_t>& dims = batch.shape().dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

// Sets the shapes in the definition to those of a batch. Feeds that the batch lacks keep their
// shapes.
void TakeShapes(const data::Batch& batch, ModelDefinition& definition) {
  const auto take = [&](const std::string& name, Shape& shape) {
    if (const Tensor* fed = batch.Find(name)) shape = ExampleShape(*fed);
  };
  const std::vector<std::string> inputs = model::InputNames(definition.model);
  for (size_t i = 0; i < inputs.size(); ++i) take(inputs[i], definition.build.features[i].shape);
  for (size_t i = 0; i < definition.build.objectives.size(); ++i) {
    model::Objective& objective = definition.build.objectives[i];
    take(model::LabelsName(definition.model, i), objective.labels.shape);
    if (objective.sample_weights)
      take(model::SampleWeightsName(definition.model, i), *objective.sample_weights);
  }
}

}  // namespace

ProgramCache::ProgramCache(const ModelDefinition& definition, model::Mode mode, bool with_updates,
                           variables::VariableStore& store, exec::Device device)
    : definition_(definition),
      mode_(mode),
      with_updates_(with_updates),
      store_(store),
      device_(std::move(device)),
      feeds_(FeedNames(definition.model)) {}

template <typename Fits>
ProgramCache::Entry* ProgramCache::Find(int64_t batch_size, const Fits& fits) {
  for (Entry& entry : entries_) {
    bool same = entry.batch_size == batch_size;
    for (size_t i = 0; i < entry.shapes.size() && same; ++i) same = fits(i, entry.shapes[i]);
    if (same) return &entry;
  }
  return nullptr;
}

StatusOr<ModelProgram*> ProgramCache::Add(const ModelDefinition& definition, int64_t batch_size) {
  Entry entry{.batch_size = batch_size, .shapes = FeedShapes(definition.build)};
  ASSIGN_OR_RETURN(entry.program,
                   ModelProgram::Compile(definition, mode_, batch_size, with_updates_, store_,
                                         device_, exchange_, places_contributions_, keeps_));
  return entries_.emplace_back(std::move(entry)).program.get();
}

StatusOr<ModelProgram*> ProgramCache::ForBatchSize(int64_t batch_size) {
  const std::vector<Shape> shapes = FeedShapes(definition_.build);
  const Entry* found =
      Find(batch_size, [&](size_t i, const Shape& shape) { return shape == shapes[i]; });
  if (found != nullptr) return found->program.get();
  return Add(definition_, batch_size);
}

ProgramCache::Entry* ProgramCache::FindFor(const data::Batch& batch) {
  return Find(batch.size(), [&](size_t i, const Shape& shape) {
    const Tensor* fed = batch.Find(feeds_[i]);
    return fed == nullptr || HasShape(*fed, shape);
  });
}

StatusOr<ModelProgram*> ProgramCache::For(const data::Batch& batch) {
  const Entry* found = FindFor(batch);
  if (found != nullptr) return found->program.get();
  ModelDefinition own = definition_;
  TakeShapes(batch, own);
  return Add(own, batch.size());
}

}  // namespace tfjob::strategy
