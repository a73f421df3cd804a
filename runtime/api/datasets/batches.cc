// Implements the batches that a program's own training loop iterates over.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/api/batch.h"
#include "runtime/api/compiled_state.h"
#include "runtime/data/pipeline.h"
#include "runtime/model/build.h"
#include "runtime/model/shape.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::api {

struct BatchesData {
  // The names of one input, label or sample weight: `field` in the pipeline's batches, and `name`
  // in a Batch ("" if its array has no name).
  struct Role {
    std::string field, name;
  };
  std::vector<Role> inputs, targets, sample_weights;
  std::unique_ptr<tfjob::data::Pipeline> pipeline;
};

namespace {

// Returns the names of the dataset's inputs or outputs. The name of an array without a name is "".
std::vector<std::string> ArrayNames(const std::map<std::string, std::string>& given, bool needed) {
  std::vector<std::string> names;
  for (const auto& [name, array] : given) names.push_back(name);
  if (names.empty() && needed) names.emplace_back();
  return names;
}

// Returns a model with these inputs and outputs, because data can be read only for a model.
model::Model StandIn(const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs) {
  model::Model model{.name = "data", .sequential = false};
  const auto call = [&](std::string name, model::LayerConfig config,
                        std::vector<model::ValueRef> from) {
    model.layers.push_back({.name = std::move(name), .config = std::move(config)});
    model.calls.push_back(
        {.layer = static_cast<int>(model.layers.size()) - 1, .inputs = std::move(from)});
    return static_cast<int>(model.calls.size()) - 1;
  };
  for (const std::string& name : inputs)
    model.inputs.push_back(call(name.empty() ? "x" : name, model::layers::InputLayer{}, {}));
  for (const std::string& name : outputs)
    model.outputs.push_back(
        {call(name.empty() ? "y" : name, model::layers::Identity{}, {{model.inputs[0], 0}}), 0});
  return model;
}

// The model that the data are read for, and the names of the arrays.
struct Reading {
  model::Model model;
  std::vector<std::string> inputs, outputs;
};

StatusOr<Reading> ReadingOf(const DatasetData& data, const config::SourceConfig& source) {
  const bool files = !data.keys.is_null();
  Reading reading{.inputs = ArrayNames(source.inputs, files),
                  .outputs = ArrayNames(source.targets, files)};
  if (reading.inputs.empty())
    return InvalidArgument("the dataset has no inputs: expected `x` or named arrays");
  reading.model = StandIn(reading.inputs, reading.outputs);
  return reading;
}

// Returns the columns of the fields that the source has, and adds their roles to `made`.
StatusOr<std::vector<tfjob::data::Column>> ColumnsOfFields(const Reading& reading,
                                                           const tfjob::data::Source& source,
                                                           double scale, BatchesData& made) {
  std::vector<tfjob::data::Column> columns;
  const auto add = [&](const std::string& field_name, const std::string& name, double factor,
                       std::vector<BatchesData::Role>& roles) {
    const tfjob::data::Field* field = source.Find(field_name);
    if (field == nullptr) return;
    const bool scaled = factor != 1;
    columns.push_back({.name = field_name,
                       .array = field_name,
                       .dtype = scaled ? tfjob::DType::kFloat32 : field->dtype,
                       .shape = field->shape,
                       .scale = static_cast<float>(scaled ? factor : 1)});
    roles.push_back({field_name, name});
  };
  const std::vector<std::string> inputs = model::InputNames(reading.model);
  for (size_t i = 0; i < inputs.size(); ++i) add(inputs[i], reading.inputs[i], scale, made.inputs);
  for (size_t i = 0; i < reading.outputs.size(); ++i) {
    add(model::LabelsName(reading.model, i), reading.outputs[i], 1, made.targets);
    add(model::SampleWeightsName(reading.model, i), reading.outputs[i], 1, made.sample_weights);
  }
  return columns;
}

tfjob::Status CheckDistribute(const DistributeOptions& options) {
  RETURN_IF_ERROR(CheckBatchSize("batch_size", options.batch_size));
  if (options.epochs < 1)
    return InvalidArgument("epochs: expected at least 1, got ", options.epochs);
  if (options.initial_epoch < 0)
    return InvalidArgument("initial_epoch: expected at least 0, got ", options.initial_epoch);
  if (options.epochs <= INT64_MAX - options.initial_epoch) return OkStatus();
  return InvalidArgument("epochs: expected fewer, got ", options.epochs, " after ",
                         options.initial_epoch);
}

StatusOr<std::shared_ptr<BatchesData>> MakeBatchesOf(const SessionData& session,
                                                     const Dataset& dataset,
                                                     const DistributeOptions& options) {
  RETURN_IF_ERROR(CheckDistribute(options));
  RETURN_IF_ERROR(session.error);
  RETURN_IF_ERROR(FromPublic(session.strategy.status()));
  const DatasetData& data = Access::Data(dataset);
  RETURN_IF_ERROR(data.error);
  if (data.open != nullptr) {
    return InvalidArgument(
        "expected files or arrays, got a dataset that an operator or a function of ",
        "the program makes, such as Map, Take or From; use Fit, or put the ",
        "examples into Arrays");
  }
  config::TrainingConfig config;
  config.seed = session.options.seed;
  // Validate requires a loss and the number of epochs. They have no other use here.
  config.loss.name = "mean_squared_error";
  config.epochs = 1;
  const bool files = !data.keys.is_null();
  if (files) {
    Json keys = Json::object();
    keys["data"]["train"] = data.keys;
    RETURN_IF_ERROR(config::SetOpenKeys(config, keys));
  }
  RETURN_IF_ERROR(config::Validate(config, {.model = true, .data = true}));
  // Set after Validate, because Validate would reject the settings as an incomplete format.
  if (!files) config.data.train = data.source;
  ASSIGN_OR_RETURN(const Reading reading, ReadingOf(data, config.data.train));
  StatusOr<std::shared_ptr<const tfjob::data::Source>> source =
      files ? train::LoadDataset(config, train::Split::kTrain, reading.model)
            : train::ArraySource(data.source, train::Split::kTrain, reading.model, data.arrays);
  RETURN_IF_ERROR(source.status());
  auto made = std::make_shared<BatchesData>();
  ASSIGN_OR_RETURN(auto columns,
                   ColumnsOfFields(reading, **source, config.data.train.scale, *made));
  const cluster::TfConfig& tf_config = Access::Data(session.strategy).tf_config;
  tfjob::data::PipelineOptions how{
      .epochs = options.initial_epoch + options.epochs,
      .shuffle = options.shuffle,
      .seed = static_cast<uint64_t>(session.options.seed),
      .worker = std::max(cluster::TrainingRank(tf_config, tf_config.task), 0),
      .workers = std::max(cluster::TrainingTaskCount(tf_config), 1),
      .global_batch = options.batch_size,
      .drop_remainder = options.drop_remainder,
      .columns = std::move(columns),
      .start = {.epoch = options.initial_epoch}};
  ASSIGN_OR_RETURN(made->pipeline, tfjob::data::Pipeline::Create(*std::move(source), how));
  return made;
}

void SetArrays(const tfjob::data::Batch& batch, const std::vector<BatchesData::Role>& roles,
               Tensor& only, std::map<std::string, Tensor>& named) {
  for (const BatchesData::Role& role : roles) {
    const Tensor array = Access::MakeTensor(*batch.Find(role.field));
    (role.name.empty() ? only : named[role.name]) = array;
  }
}

StatusOr<std::optional<Batch>> NextOf(BatchesData& data) {
  const tfjob::data::Batch* next = data.pipeline->Next();
  if (next == nullptr) {
    tfjob::Status status = data.pipeline->status();
    if (!status.ok()) data.pipeline->Seek(data.pipeline->drawn() + 1);
    RETURN_IF_ERROR(status);
    return std::optional<Batch>();
  }
  Batch batch;
  SetArrays(*next, data.inputs, batch.x, batch.inputs);
  SetArrays(*next, data.targets, batch.y, batch.targets);
  SetArrays(*next, data.sample_weights, batch.sample_weight, batch.sample_weights);
  return std::optional<Batch>(std::move(batch));
}

}  // namespace

Batches Access::MakeBatches(std::shared_ptr<BatchesData> data) {
  return Batches(std::move(data));
}

Result<std::optional<Batch>> Batches::Next() {
  return ToPublic(NextOf(*data_));
}

Batches::Iterator& Batches::Iterator::operator++() {
  batch_ = batches_->Next().value();
  return *this;
}

int64_t Batches::batches_per_epoch() const {
  return data_->pipeline->batches_per_epoch();
}

Result<Batches> Session::Distribute(const Dataset& dataset,
                                    const DistributeOptions& options) const {
  auto made = MakeBatchesOf(*data_, dataset, options);
  if (!made.ok()) return ToPublic(Annotate(made.status(), "Distribute"));
  return Access::MakeBatches(*std::move(made));
}

}  // namespace tfjob::api
